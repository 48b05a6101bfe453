"""Texts in, parses and features out: checks, cache, workers, alignment."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from featurestore import FeatureStore, ParseRecord
from service.parsers import Limits, ModelFile, ParseInput, ParserIdentity
from service.parsers.base import Outcome
from service.pipeline.features import Deriver
from service.pipeline.inputs import check_input, parse_key
from service.pipeline.lenders import TokenizerDesk, choose_parser
from service.pipeline.records import FeatureAnswer, FeatureRequest, ItemFeatures
from service.settings import Settings
from service.tokenizers import LoadedTokenizer
from service.workers.pools import WorkerPools
from syntax import Parse
from syntax.errors import ParsebankError
from syntax.subwords import POLICIES


@dataclass(frozen=True)
class _Plan:
    """A request after its checks.

    Attributes:
        keys: Key or error of each text, in order.
        wanted: Text of each key.
        stored: Parses that were there before, by key.
    """

    model: ModelFile
    parser: ParserIdentity
    lang: str
    keys: list[str | ParsebankError]
    wanted: dict[str, ParseInput]
    stored: dict[str, Parse]


class FeaturePipeline:
    """The whole way of a request, free of HTTP. Belongs to one event loop.

    Args:
        settings: Limits, defaults, where models are.
        store: Where parses are looked up and kept.
        pools: The parser processes.

    Attributes:
        counts: Texts so far by what became of them: ``parsed``, ``reused``, or an error type.
    """

    def __init__(self, settings: Settings, store: FeatureStore, pools: WorkerPools) -> None:
        self.counts: Counter[str] = Counter()
        self._settings = settings
        self._store = store
        self._pools = pools
        self._limits = Limits(settings.max_chars_per_text, settings.max_words_per_sentence)
        self._tokenizers = TokenizerDesk(settings)
        self._described: set[str] = set()

    async def run(self, request: FeatureRequest) -> FeatureAnswer:
        """Answer every text with its features or its own error.

        A text that occurs twice in a request is parsed once.

        Raises:
            UnknownNameError: No such parser, language, tokenizer or policy.
            OverloadedError: There is no room in the queue; nothing was parsed.
            ModelLoadError, DeadlineError: The model is not there (yet).
            StoreError: The store could not be read or written.
        """
        deadline = asyncio.get_running_loop().time() + self._settings.request_deadline_seconds
        POLICIES[request.policy]
        tokenizer = await self._tokenizers.get(request.tokenizer) if request.tokenizer else None
        plan = await asyncio.to_thread(self._plan, request)
        fresh = await self._parse(plan, deadline)
        answer = await asyncio.to_thread(self._finish, request, plan, fresh, tokenizer)
        self.counts.update(_outcome_name(item) for item in answer.items)
        return answer

    def _plan(self, request: FeatureRequest) -> _Plan:
        model, parser, lang = choose_parser(self._settings, request.parser, request.lang)
        keys = [self._admit(item, parser, lang) for item in request.items]
        pairs = zip(keys, request.items, strict=True)
        wanted = {key: item for key, item in pairs if isinstance(key, str)}
        records = self._store.parses.get_many(list(wanted))
        stored = {key: record.parse for key, record in records.items()}
        return _Plan(model, parser, lang, keys, wanted, stored)

    def _admit(self, item: ParseInput, parser: ParserIdentity, lang: str) -> str | ParsebankError:
        try:
            check_input(item, self._limits)
        except ParsebankError as error:
            return error
        return parse_key(parser, lang, item)

    async def _parse(self, plan: _Plan, deadline: float) -> dict[str, Outcome]:
        missing = {key: item for key, item in plan.wanted.items() if key not in plan.stored}
        if not missing:
            return {}
        texts = list(missing.values())
        fingerprint = plan.parser.fingerprint
        outcomes = await self._pools.parse(plan.model, fingerprint, texts, deadline)
        return dict(zip(missing, outcomes, strict=True))

    def _finish(
        self,
        request: FeatureRequest,
        plan: _Plan,
        fresh: Mapping[str, Outcome],
        tokenizer: LoadedTokenizer | None,
    ) -> FeatureAnswer:
        if request.store and fresh:
            self._keep(plan, fresh)
        deriver = Deriver(self._settings, tokenizer, request.policy, request.matrices)
        return FeatureAnswer(plan.parser, tokenizer, deriver.derive(_items(plan, fresh)))

    def _keep(self, plan: _Plan, fresh: Mapping[str, Outcome]) -> None:
        parser = plan.parser
        if parser.fingerprint not in self._described:
            content = {"name": parser.name, **parser.content}
            self._store.describe(parser.fingerprint, "parser", content)
            self._described.add(parser.fingerprint)
        for key, outcome in fresh.items():
            if isinstance(outcome, Parse):
                mode = plan.wanted[key].mode
                record = ParseRecord(key, plan.lang, parser.fingerprint, mode, outcome)
                self._store.parses.put(record)


def _items(plan: _Plan, fresh: Mapping[str, Outcome]) -> Iterator[ItemFeatures | ParsebankError]:
    """Each text's bare parse or error, in the order asked."""
    for key in plan.keys:
        if isinstance(key, ParsebankError):
            yield key
        elif key in plan.stored:
            yield ItemFeatures(key, cached=True, parse=plan.stored[key])
        else:
            yield _fresh_item(key, fresh[key])


def _fresh_item(key: str, outcome: Outcome) -> ItemFeatures | ParsebankError:
    if isinstance(outcome, ParsebankError):
        return outcome
    return ItemFeatures(key, cached=False, parse=outcome)


def _outcome_name(item: ItemFeatures | ParsebankError) -> str:
    if isinstance(item, ParsebankError):
        return item.error_type
    return "reused" if item.cached else "parsed"
