"""The pipeline of a request: plan, parse, derive, render."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from featurestore import FeatureStore, ParseRecord
from service.logs import note
from service.parsers.base import Outcome
from service.pipeline.adhoc import AdhocDataset
from service.pipeline.ahead import read_ahead
from service.pipeline.features import Deriver
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

SMALL_TEXTS: Final = 8
SMALL_CHARACTERS: Final = 1_000
"""Limits of a small request: about 200 words, 1 ms to derive and render."""

T = TypeVar("T")
Fresh = Mapping[str, Outcome]
Numbered = tuple[int, ItemFeatures | ParsebankError]
"""Index of a text in its request, and its features or error."""


@dataclass(frozen=True)
class _Finished(Generic[T]):
    """A rendered value, and the outcome of each text for the counts."""

    value: T
    outcomes: Sequence[str]


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

    async def run(self, request: FeatureRequest) -> FeatureAnswer:
        """Answer every text with its features or its own error.

        A text that occurs twice in a request is parsed once.

        Raises:
            UnknownNameError: No such parser, language, tokenizer or policy.
            OverloadedError: The queue is full; nothing was parsed.
            ModelLoadError, DeadlineError: The model cannot be loaded, or not in time.
            StoreError: The store cannot be read or written.
        """
        return await self.answer(request, lambda _, answer: answer)

    async def answer(
        self,
        request: FeatureRequest,
        render: Callable[[Plan, FeatureAnswer], T],
        peek: Callable[[Plan], T | None] = lambda _: None,
    ) -> T:
        """As `run`, with the answer rendered in the thread that derives it.

        Small requests (`_is_small`) whose data is in memory stay on the event loop, because a
        change of threads would take longer than the work.

        Args:
            request: The request.
            render: Renders the answer.
            peek: Called before anything is parsed; a result other than ``None`` is the answer.
        """
        tokenizer, deadline = await self._prepare(request)

        def begin(plan: Plan) -> Plan | _Finished[T]:
            early = peek(plan)
            if early is not None:
                return _Finished(early, ())
            return plan if plan.missing else self._complete(plan, {}, render)

        def look_up_and_begin() -> Plan | _Finished[T]:
            return begin(self._look_up(request, tokenizer, deadline))

        def keep_and_complete(plan: Plan, fresh: Fresh) -> _Finished[T]:
            self._keep(plan, fresh)
            return self._complete(plan, fresh, render)

        cached = self._plan_cached(request, tokenizer, deadline)
        begun = begin(cached) if cached else await asyncio.to_thread(look_up_and_begin)
        if isinstance(begun, Plan):
            fresh = await self._parse(begun)
            if cached and self._offer(begun, fresh):
                begun = self._complete(begun, fresh, render)
            else:
                begun = await asyncio.to_thread(keep_and_complete, begun, fresh)
        return self._counted(begun)

    async def plan(self, request: FeatureRequest) -> Plan:
        """Check a request, and look up its stored parses.

        Raises:
            UnknownNameError: No such parser, language, tokenizer or policy.
            ModelLoadError, StoreError: The model or the store cannot be read.
        """
        tokenizer, deadline = await self._prepare(request)
        return await asyncio.to_thread(self._look_up, request, tokenizer, deadline)

    async def stream(
        self, plan: Plan, render: Callable[[Sequence[Numbered]], T]
    ) -> AsyncGenerator[T]:
        """Answer texts as they finish: first those that need no parser, then in any order.

        Parses are stored as they finish. Closing the iterator cancels the rest. The errors of
        `run` are raised here too, usually before the first group.

        Args:
            plan: From `plan`.
            render: Renders a group of texts, in a thread.

        Yields:
            The rendered groups.
        """
        deriver = self._deriver(plan)

        def finish(places: Sequence[int], fresh: Fresh) -> _Finished[T]:
            return self._finish_group(plan, deriver, places, fresh, render)

        async with read_ahead(self._fresh(plan)) as reading:
            if places := plan.ready_places():
                group = await asyncio.to_thread(finish, places, {})
                reading.check()
                yield self._counted(group)
            async with aclosing(reading.groups()) as groups:
                async for outcomes in groups:
                    fresh = dict(outcomes)
                    group = await asyncio.to_thread(finish, plan.places(fresh), fresh)
                    yield self._counted(group)

    async def _prepare(self, request: FeatureRequest) -> tuple[LoadedTokenizer | None, float]:
        """The tokenizer, and the deadline of the parses."""
        most = self._settings.request_deadline_seconds
        seconds = most if request.deadline_seconds is None else request.deadline_seconds
        deadline = asyncio.get_running_loop().time() + min(seconds, most)
        POLICIES[request.policy]
        note(items=len(request.items))
        tokenizer = await self.tokenizers.get(request.tokenizer) if request.tokenizer else None
        return tokenizer, deadline

    def _look_up(
        self, request: FeatureRequest, tokenizer: LoadedTokenizer | None, deadline: float
    ) -> Plan:
        with self._stages.measure("lookup"):
            return self._planner.plan(request, tokenizer, deadline)

    def _plan_cached(
        self, request: FeatureRequest, tokenizer: LoadedTokenizer | None, deadline: float
    ) -> Plan | None:
        """The plan of a small request, if everything it needs is in memory."""
        if not _is_small(request):
            return None
        with self._stages.measure("lookup"):
            return self._planner.plan_cached(request, tokenizer, deadline)

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

    def _complete(
        self, plan: Plan, fresh: Fresh, render: Callable[[Plan, FeatureAnswer], T]
    ) -> _Finished[T]:
        """Derive and render a whole answer."""
        answer = self._derived(plan, self._deriver(plan), list(plan.items(fresh)))
        with self._stages.measure("render"):
            value = render(plan, answer)
        return _Finished(value, [_outcome_name(item) for item in answer.items])

    def _finish_group(
        self,
        plan: Plan,
        deriver: Deriver,
        places: Sequence[int],
        fresh: Fresh,
        render: Callable[[Sequence[Numbered]], T],
    ) -> _Finished[T]:
        """Store, derive and render some texts of an answer."""
        self._keep(plan, fresh)
        answer = self._derived(plan, deriver, [plan.item(place, fresh) for place in places])
        with self._stages.measure("render"):
            value = render(list(zip(places, answer.items, strict=True)))
        return _Finished(value, [_outcome_name(item) for item in answer.items])

    def _counted(self, finished: _Finished[T]) -> T:
        self.counts.update(finished.outcomes)
        return finished.value

    def _deriver(self, plan: Plan) -> Deriver:
        return Deriver(self._settings, plan.tokenizer, plan.request)

    def _derived(
        self, plan: Plan, deriver: Deriver, items: Sequence[ItemFeatures | ParsebankError]
    ) -> FeatureAnswer:
        with self._stages.measure("derive"):
            derived = deriver.derive(items)
        answer = FeatureAnswer(plan.parser, plan.lang, plan.tokenizer, derived)
        if plan.request.store:
            self._adhoc.add_answer(answer, plan.generation)
        return answer

    def _keep(self, plan: Plan, fresh: Fresh) -> None:
        """Put new parses into the store."""
        records = _new_records(plan, fresh)
        if records:
            with self._stages.measure("store"):
                self._describe(plan)
                for record in records:
                    self._store.parses.put(record)

    def _offer(self, plan: Plan, fresh: Fresh) -> bool:
        """Put new parses into the store without waiting; returns whether that succeeded."""
        records = _new_records(plan, fresh)
        if records and plan.parser.fingerprint not in self._described:
            return False
        with self._stages.measure("store"):
            return all(self._store.parses.offer(record) for record in records)

    def _describe(self, plan: Plan) -> None:
        """Record once what the parser's fingerprint stands for."""
        parser = plan.parser
        if parser.fingerprint not in self._described:
            self._store.describe(parser.fingerprint, "parser", parser.description)
            self._described.add(parser.fingerprint)


def _is_small(request: FeatureRequest) -> bool:
    """Whether the work beside parsing takes a fraction of a millisecond."""
    items = request.items
    if request.matrices or len(items) > SMALL_TEXTS:
        return False
    return sum(item.characters for item in items) <= SMALL_CHARACTERS


def _new_records(plan: Plan, fresh: Fresh) -> list[ParseRecord]:
    """The new parses of a request as records; none if it asks not to store."""
    if not plan.request.store:
        return []
    made_by = plan.parser.fingerprint
    return [
        ParseRecord(key, plan.lang, made_by, plan.wanted[key].mode, outcome)
        for key, outcome in fresh.items()
        if isinstance(outcome, Parse)
    ]


def _outcome_name(item: ItemFeatures | ParsebankError) -> str:
    """Outcome of a text: ``parsed``, ``reused``, or an error type."""
    if isinstance(item, ParsebankError):
        return item.error_type
    return "reused" if item.cached else "parsed"
