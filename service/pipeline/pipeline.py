"""The path of every answer: plan, parse missing texts, derive, render."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final, Literal, TypeVar

from featurestore import FeatureStore, ParseRecord
from service.logs import note
from service.parsers.base import Outcome
from service.pipeline.adhoc import AdhocDataset
from service.pipeline.ahead import read_ahead
from service.pipeline.features import MatrixBudget, derive
from service.pipeline.plan import Plan, Planner
from service.pipeline.records import FeatureAnswer, FeatureRequest, ItemFeatures
from service.pipeline.resolvers import ParserResolver, TokenizerResolver
from service.settings import Settings
from service.timing import Stages
from service.workers.pools import WorkerPools
from syntax import Parse
from syntax.errors import ParsebankError
from syntax.subwords import POLICIES

SHORT_TEXTS: Final = 8
SHORT_CHARACTERS: Final = 1_000
"""Limits of a short request: about 200 words, 1 ms to derive and render."""

NotKept = Literal["read-only", "store-failing"]

T = TypeVar("T")
Fresh = Mapping[str, Outcome]


class FeaturePipeline:
    """Answers requests for parses and features, without HTTP. Belongs to one event loop.

    Attributes:
        counts: Texts so far by outcome: ``parsed``, ``reused``, or an error type.
    """

    def __init__(
        self,
        settings: Settings,
        store: FeatureStore,
        pools: WorkerPools,
        adhoc: AdhocDataset,
        stages: Stages | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.parsers = ParserResolver(settings)
        self.tokenizers = TokenizerResolver(settings)
        self._settings = settings
        self._store = store
        self._pools = pools
        self._adhoc = adhoc
        self._stages = Stages() if stages is None else stages
        self._planner = Planner(settings, self.parsers, store)
        self._described: set[str] = set()
        self._keeps = not settings.read_only

    @property
    def not_kept(self) -> NotKept | None:
        if not self._keeps:
            return "read-only"
        return "store-failing" if self._store.parses.failure is not None else None

    async def run(self, request: FeatureRequest) -> FeatureAnswer:
        """Answer every text with its features or its own error; equal texts are parsed once."""
        answer, _ = await self.answer(await self.plan(request), lambda _: None)
        return answer

    async def plan(self, request: FeatureRequest) -> Plan:
        """Check a request, and look up its stored parses; unknown names are refused here."""
        POLICIES[request.policy]
        most = self._settings.request_deadline_seconds
        seconds = most if request.deadline_seconds is None else request.deadline_seconds
        deadline = asyncio.get_running_loop().time() + min(seconds, most)
        note(items=len(request.items))
        tokenizer = await self.tokenizers.get(request.tokenizer) if request.tokenizer else None

        def look_up(in_memory: bool) -> Plan | None:
            with self._stages.measure("lookup"):
                return self._planner.plan(request, tokenizer, deadline, in_memory=in_memory)

        plan = look_up(in_memory=True) if _is_short(request) else None
        if plan is None:
            plan = await asyncio.to_thread(look_up, in_memory=False)
        assert plan is not None, "a lookup that may read files finds out"
        return plan

    async def answer(
        self, plan: Plan, render: Callable[[FeatureAnswer], T]
    ) -> tuple[FeatureAnswer, T]:
        """Derive and render in one thread. Where the queue is full, nothing is parsed."""
        fresh = await self._parse(plan)
        budget = MatrixBudget.of(self._settings, plan.request.packed)
        finish = partial(self._finish, plan, range(len(plan.keys)), fresh, budget, render)
        # A change of threads takes half as long again as a short answer without matrices.
        is_quick = _is_short(plan.request) and not plan.request.matrices
        if is_quick and self._keep(plan, fresh, wait=False):
            answer, rendered = finish(keep=False)
        else:
            answer, rendered = await asyncio.to_thread(finish)
        self.counts.update(map(_outcome_name, answer.items))
        return answer, rendered

    async def stream(
        self, plan: Plan, render: Callable[[Sequence[int], FeatureAnswer], T]
    ) -> AsyncGenerator[T]:
        """Answer texts as they finish: first those that need no parser, then in any order.

        Parses are stored as they finish. Closing the iterator cancels the rest. The errors of
        `answer` are raised here too, usually before the first group. ``render`` gets the indices of
        a group of texts in the request, and their answer.
        """
        budget = MatrixBudget.of(self._settings, plan.request.packed)

        async def finish(places: Sequence[int], fresh: Fresh) -> T:
            answer, rendered = await asyncio.to_thread(
                self._finish, plan, places, fresh, budget, partial(render, places)
            )
            self.counts.update(map(_outcome_name, answer.items))
            return rendered

        async with read_ahead(self._fresh(plan)) as reading:
            if places := plan.ready_places():
                group = await finish(places, {})
                reading.check()
                yield group
            async with aclosing(reading.groups()) as groups:
                async for outcomes in groups:
                    fresh = dict(outcomes)
                    yield await finish(plan.places(fresh), fresh)

    async def _parse(self, plan: Plan) -> Fresh:
        fresh: dict[str, Outcome] = {}
        try:
            async with aclosing(self._fresh(plan)) as outcomes:
                async for key, outcome in outcomes:
                    fresh[key] = outcome  # noqa: PERF403 - a cancelled request keeps these, see below
        except asyncio.CancelledError:
            # The caller has gone. These parses are stored in case it asks again.
            self._keep(plan, fresh, wait=False)
            raise
        return fresh

    async def _fresh(self, plan: Plan) -> AsyncGenerator[tuple[str, Outcome]]:
        if not plan.missing:
            return
        keys, texts = list(plan.missing), list(plan.missing.values())
        answers = self._pools.stream(plan.model, plan.parser.fingerprint, texts, plan.deadline)
        async with aclosing(answers):
            async for position, outcome in answers:
                yield keys[position], outcome

    def _finish(
        self,
        plan: Plan,
        places: Sequence[int],
        fresh: Fresh,
        budget: MatrixBudget,
        render: Callable[[FeatureAnswer], T],
        keep: bool = True,
    ) -> tuple[FeatureAnswer, T]:
        if keep:
            self._keep(plan, fresh)
        with self._stages.measure("derive"):
            parsed = [plan.item(place, fresh) for place in places]
            items = derive(parsed, plan.tokenizer, plan.request, budget)
        answer = FeatureAnswer(plan.parser, plan.lang, plan.tokenizer, items)
        if plan.request.store and self._keeps:
            self._adhoc.add_answer(answer, plan.generation)
        with self._stages.measure("render"):
            return answer, render(answer)

    def _keep(self, plan: Plan, fresh: Fresh, wait: bool = True) -> bool:
        """Store parses; false if ``wait`` is false and a write would have to wait."""
        if not (plan.request.store and self._keeps):
            return True
        parser = plan.parser
        records = [
            ParseRecord(key, plan.lang, parser.fingerprint, plan.wanted[key].mode, outcome)
            for key, outcome in fresh.items()
            if isinstance(outcome, Parse)
        ]
        if not records:
            return True
        is_described = parser.fingerprint in self._described
        if not wait and not is_described:
            return False
        with self._stages.measure("store"):
            if not wait:
                return all(self._store.parses.offer(record) for record in records)
            if not is_described:
                # Once: what the parser's fingerprint stands for.
                self._store.describe(parser.fingerprint, "parser", parser.description)
                self._described.add(parser.fingerprint)
            for record in records:
                self._store.parses.put(record)
        return True


def _is_short(request: FeatureRequest) -> bool:
    items = request.items
    return len(items) <= SHORT_TEXTS and sum(i.characters for i in items) <= SHORT_CHARACTERS


def _outcome_name(item: ItemFeatures | ParsebankError) -> str:
    if isinstance(item, ParsebankError):
        return item.error_type
    return "reused" if item.cached else "parsed"
