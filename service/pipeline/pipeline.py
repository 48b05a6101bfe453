"""The path of every answer: plan, parse what is missing, derive, render."""

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
from service.tokenizers import LoadedTokenizer
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
"""Outcomes of the texts that were parsed for a request, by key."""


class FeaturePipeline:
    """Answers requests for parses and features, without HTTP. Belongs to one event loop.

    Args:
        settings: Limits, defaults, folder of models.
        store: Store of the parses.
        pools: The parser processes.
        adhoc: Dataset for the features of texts whose request names a tokenizer.
        stages: Times of the stages.

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
        """Why new parses are not in the store for good, if so."""
        if not self._keeps:
            return "read-only"
        return "store-failing" if self._store.parses.failure is not None else None

    async def run(self, request: FeatureRequest) -> FeatureAnswer:
        """Answer every text with its features or its own error.

        A text that occurs twice in a request is parsed once.

        Raises:
            UnknownNameError: No such parser, language, tokenizer or policy.
            OverloadedError: The queue is full; nothing was parsed.
            ModelLoadError, DeadlineError: The model cannot be loaded, or not in time.
            StoreError: The store cannot be read or written.
        """
        answer, _ = await self.answer(await self.plan(request), lambda _: None)
        return answer

    async def plan(self, request: FeatureRequest) -> Plan:
        """Check a request, and look up its stored parses.

        Raises:
            UnknownNameError: No such parser, language, tokenizer or policy.
            ModelLoadError, StoreError: The model or the store cannot be read.
        """
        POLICIES[request.policy]
        most = self._settings.request_deadline_seconds
        seconds = most if request.deadline_seconds is None else request.deadline_seconds
        deadline = asyncio.get_running_loop().time() + min(seconds, most)
        note(items=len(request.items))
        tokenizer = await self.tokenizers.get(request.tokenizer) if request.tokenizer else None
        plan = None
        if _is_short(request):
            with self._stages.measure("lookup"):
                plan = self._planner.plan_cached(request, tokenizer, deadline)
        if plan is None:
            plan = await asyncio.to_thread(self._look_up, request, tokenizer, deadline)
        return plan

    async def answer(
        self, plan: Plan, render: Callable[[FeatureAnswer], T]
    ) -> tuple[FeatureAnswer, T]:
        """Parse what is missing, derive the features, and render them.

        Args:
            plan: From `plan`.
            render: Renders the answer, in the thread that derives it.

        Raises:
            OverloadedError: The queue is full; nothing was parsed.
            ModelLoadError, DeadlineError: The model cannot be loaded, or not in time.
            StoreError: The store cannot be written.
        """
        fresh = await self._parse(plan)
        finish = partial(
            self._finish, plan, range(len(plan.keys)), fresh, self._budget(plan), render
        )
        # A change of threads takes longer than a short answer without matrices.
        is_quick = _is_short(plan.request) and not plan.request.matrices
        if is_quick and self._offer(plan, fresh):
            answer, rendered = finish(keep=False)
        else:
            answer, rendered = await asyncio.to_thread(finish)
        self._count(answer)
        return answer, rendered

    async def stream(
        self, plan: Plan, render: Callable[[Sequence[int], FeatureAnswer], T]
    ) -> AsyncGenerator[T]:
        """Answer texts as they finish: first those that need no parser, then in any order.

        Parses are stored as they finish. Closing the iterator cancels the rest. The errors of
        `answer` are raised here too, usually before the first group.

        Args:
            plan: From `plan`.
            render: Renders a group of texts, given their indices in the request.

        Yields:
            The rendered groups.
        """
        budget = self._budget(plan)

        async def finish(places: Sequence[int], fresh: Fresh) -> T:
            answer, rendered = await asyncio.to_thread(
                self._finish, plan, places, fresh, budget, partial(render, places)
            )
            self._count(answer)
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

    def _look_up(
        self, request: FeatureRequest, tokenizer: LoadedTokenizer | None, deadline: float
    ) -> Plan:
        with self._stages.measure("lookup"):
            return self._planner.plan(request, tokenizer, deadline)

    async def _parse(self, plan: Plan) -> Fresh:
        fresh: dict[str, Outcome] = {}
        try:
            async with aclosing(self._fresh(plan)) as outcomes:
                async for key, outcome in outcomes:
                    fresh[key] = outcome  # noqa: PERF403 - a cancelled request keeps these, see below
        except asyncio.CancelledError:
            # The caller has gone. These parses are stored in case it asks again.
            self._offer(plan, fresh)
            raise
        return fresh

    async def _fresh(self, plan: Plan) -> AsyncGenerator[tuple[str, Outcome]]:
        """Key and outcome of each missing text, as it is known."""
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
        """Store new parses, then derive and render some texts of a request."""
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

    def _count(self, answer: FeatureAnswer) -> None:
        self.counts.update(_outcome_name(item) for item in answer.items)

    def _budget(self, plan: Plan) -> MatrixBudget:
        return MatrixBudget.of(self._settings, plan.request.packed)

    def _new_records(self, plan: Plan, fresh: Fresh) -> list[ParseRecord]:
        """The new parses of a request as records; none if it, or the service, stores none."""
        if not (plan.request.store and self._keeps):
            return []
        made_by = plan.parser.fingerprint
        return [
            ParseRecord(key, plan.lang, made_by, plan.wanted[key].mode, outcome)
            for key, outcome in fresh.items()
            if isinstance(outcome, Parse)
        ]

    def _keep(self, plan: Plan, fresh: Fresh) -> None:
        """Put new parses into the store."""
        records = self._new_records(plan, fresh)
        if records:
            with self._stages.measure("store"):
                self._describe(plan)
                for record in records:
                    self._store.parses.put(record)

    def _offer(self, plan: Plan, fresh: Fresh) -> bool:
        """Put new parses into the store without waiting; returns whether that succeeded."""
        records = self._new_records(plan, fresh)
        if not records:
            return True
        if plan.parser.fingerprint not in self._described:
            return False
        with self._stages.measure("store"):
            return all(self._store.parses.offer(record) for record in records)

    def _describe(self, plan: Plan) -> None:
        """Record once what the parser's fingerprint stands for."""
        parser = plan.parser
        if parser.fingerprint not in self._described:
            self._store.describe(parser.fingerprint, "parser", parser.description)
            self._described.add(parser.fingerprint)


def _is_short(request: FeatureRequest) -> bool:
    """Whether the work beside parsing takes a fraction of a millisecond, matrices aside."""
    items = request.items
    return len(items) <= SHORT_TEXTS and sum(i.characters for i in items) <= SHORT_CHARACTERS


def _outcome_name(item: ItemFeatures | ParsebankError) -> str:
    """Outcome of a text: ``parsed``, ``reused``, or an error type."""
    if isinstance(item, ParsebankError):
        return item.error_type
    return "reused" if item.cached else "parsed"
