"""Features of examples as a trainer sees them: parses, pieces, special tokens, matrices.

The arrays equal those of `FeatureDataset.stream` for the same segments and options.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from featurestore import FeatureStore, ParseRecord
from service.parsers import ParseInput
from service.pipeline.adhoc import AdhocDataset, AdhocSegment
from service.pipeline.assembled import (
    AlignedSegment,
    Assembler,
    AssemblyAnswer,
    Example,
    FailedExample,
    ParsedSegment,
)
from service.pipeline.pipeline import FeaturePipeline
from service.pipeline.records import FeatureAnswer, FeatureRequest, ItemFeatures
from service.settings import Settings
from service.tokenizers import LoadedTokenizer
from syntax.alignment import segment_features
from syntax.batches import AssemblySpec
from syntax.errors import ParsebankError, SpecError, UnknownKeyError


@dataclass(frozen=True, slots=True)
class SegmentText:
    """One text of an example, and its language if it differs from the request's."""

    item: ParseInput
    lang: str | None = None


@dataclass(frozen=True, slots=True)
class ExampleTexts:
    """Segments of an example: one text, a pair, a question with its passage, ..."""

    segments: tuple[SegmentText, ...]
    example_id: str | None = None


@dataclass(frozen=True)
class AssemblyRequest:
    """A request for the features of examples; ``padded`` to a common length, as in a batch."""

    examples: tuple[ExampleTexts, ...]
    tokenizer: str | None
    spec: AssemblySpec
    parsing: FeatureRequest
    padded: bool = False


Found = Mapping[SegmentText, ParsedSegment | ParsebankError]


class FeatureAssembler:
    """Answers requests for features. Belongs to one event loop."""

    def __init__(
        self,
        settings: Settings,
        store: FeatureStore,
        pipeline: FeaturePipeline,
        adhoc: AdhocDataset,
    ) -> None:
        self._settings = settings
        self._store = store
        self._pipeline = pipeline
        self._adhoc = adhoc

    async def run(self, request: AssemblyRequest) -> AssemblyAnswer:
        """Answer every example with its arrays or its own error, and append it to ``adhoc``."""
        tokenizer = await self.tokenizer(request.tokenizer)
        generation = self._store.parses.generation
        found = await self._parse(request)
        return await asyncio.to_thread(self._finish, request, tokenizer, found, generation)

    async def tokenizer(self, name: str | None) -> LoadedTokenizer:
        return await self._pipeline.tokenizers.get(name or self._settings.tokenizer)

    async def check(self, keys: Sequence[str]) -> None:
        if missing := await asyncio.to_thread(self._store.parses.missing, keys):
            raise _unknown_keys(missing)

    async def stored(
        self, keys: Sequence[str], tokenizer: LoadedTokenizer, spec: AssemblySpec
    ) -> AssemblyAnswer:
        return await asyncio.to_thread(self._stored, keys, tokenizer, spec)

    async def _parse(self, request: AssemblyRequest) -> Found:
        groups: dict[str | None, dict[SegmentText, None]] = {}
        for example in request.examples:
            for segment in example.segments:
                groups.setdefault(segment.lang or request.parsing.lang, {})[segment] = None
        answers = await asyncio.gather(
            *(
                self._pipeline.run(replace(request.parsing, lang=lang, items=items))
                for lang, segments in groups.items()
                for items in [tuple(segment.item for segment in segments)]
            )
        )
        return {
            segment: _source(item, answer)
            for segments, answer in zip(groups.values(), answers, strict=True)
            for segment, item in zip(segments, answer.items, strict=True)
        }

    def _finish(
        self,
        request: AssemblyRequest,
        tokenizer: LoadedTokenizer,
        found: Found,
        generation: int,
    ) -> AssemblyAnswer:
        prepared = _prepare(found.values(), tokenizer)
        examples = [_example(texts, found, prepared) for texts in request.examples]
        keeps = request.parsing.store and not self._settings.read_only
        for example in examples:
            if keeps and isinstance(example, Example):
                segments = [
                    AdhocSegment(text.key, text.lang, text.parser, text.parse.text, one.features)
                    for one in example.segments
                    for text in [one.source]
                ]
                self._adhoc.add(tokenizer, segments, generation)
        return self._assembled(examples, tokenizer, request.spec, request.padded)

    def _stored(
        self, keys: Sequence[str], tokenizer: LoadedTokenizer, spec: AssemblySpec
    ) -> AssemblyAnswer:
        records = self._store.parses.get_many(list(dict.fromkeys(keys)))
        if missing := [key for key in dict.fromkeys(keys) if key not in records]:
            raise _unknown_keys(missing)
        sources = {key: self._source(record) for key, record in records.items()}
        prepared = _prepare(sources.values(), tokenizer)
        example = Example(None, tuple(_usable(prepared[key]) for key in keys))
        answer = self._assembled([example], tokenizer, spec, padded=False)
        if isinstance(answer.examples[0], FailedExample):
            raise answer.examples[0].error
        return answer

    def _source(self, record: ParseRecord) -> ParsedSegment:
        try:
            name = self._store.resolve(record.parser).get("name", record.parser)
        except UnknownKeyError:
            name = record.parser
        return ParsedSegment(
            record.key, record.lang, record.parser, name, cached=True, parse=record.parse
        )

    def _assembled(
        self,
        examples: Sequence[Example | FailedExample],
        tokenizer: LoadedTokenizer,
        spec: AssemblySpec,
        padded: bool,
    ) -> AssemblyAnswer:
        assembler = Assembler(self._settings, tokenizer.special_tokens, spec, padded)
        return AssemblyAnswer(tokenizer, spec, padded, assembler.assemble(examples))


def _source(
    item: ItemFeatures | ParsebankError, answer: FeatureAnswer
) -> ParsedSegment | ParsebankError:
    if isinstance(item, ParsebankError):
        return item
    parser = answer.parser
    return ParsedSegment(
        item.key, answer.lang, parser.fingerprint, parser.name, item.cached, item.parse
    )


def _prepare(
    found: Iterable[ParsedSegment | ParsebankError], tokenizer: LoadedTokenizer
) -> dict[str, AlignedSegment | ParsebankError]:
    sources = {source.key: source for source in found if isinstance(source, ParsedSegment)}
    encoded = tokenizer.encode_batch([source.parse.text for source in sources.values()])
    prepared: dict[str, AlignedSegment | ParsebankError] = {}
    for source, (input_ids, offsets) in zip(sources.values(), encoded, strict=True):
        try:
            features = segment_features(source.parse, input_ids, offsets)
            prepared[source.key] = AlignedSegment(source, features)
        except ParsebankError as error:
            prepared[source.key] = error
    return prepared


def _example(
    texts: ExampleTexts, found: Found, prepared: Mapping[str, AlignedSegment | ParsebankError]
) -> Example | FailedExample:
    segments: list[AlignedSegment] = []
    for number, text in enumerate(texts.segments):
        outcome = found[text]
        ready = prepared[outcome.key] if isinstance(outcome, ParsedSegment) else outcome
        if isinstance(ready, ParsebankError):
            if len(texts.segments) > 1:
                message = f"segment {number}: {ready.message}"
                ready = type(ready)(message, **ready.detail, segment=number)
            return FailedExample(texts.example_id, ready)
        segments.append(ready)
    if not segments:
        return FailedExample(texts.example_id, SpecError("the example has no segment; give one"))
    return Example(texts.example_id, tuple(segments))


def _unknown_keys(missing: Sequence[str]) -> UnknownKeyError:
    return UnknownKeyError(
        f"the store has no parse under {', '.join(missing)}; keys are in the answers of /parse "
        "and /features, and depend on the parser",
        keys=list(missing),
    )


def _usable(prepared: AlignedSegment | ParsebankError) -> AlignedSegment:
    if isinstance(prepared, ParsebankError):
        raise prepared
    return prepared
