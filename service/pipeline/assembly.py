"""From segments to what a trainer would see: parses, pieces, special tokens, matrices.

The arrays are those that `FeatureDataset.stream` gives for the same segments and options: the same
two functions make them here and there (`segment_features`, `assemble_batch`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from featurestore import FeatureStore, ParseRecord
from service.parsers import ParseInput
from service.pipeline.adhoc import AdhocDataset, AdhocSegment
from service.pipeline.assembled import (
    Assembler,
    AssemblyAnswer,
    Example,
    FailedExample,
    Prepared,
    Source,
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
    """One text of an example, and its language where it is not the request's."""

    item: ParseInput
    lang: str | None = None


@dataclass(frozen=True, slots=True)
class ExampleTexts:
    """One text, a pair, a question with its passage, or any number of segments."""

    segments: tuple[SegmentText, ...]
    example_id: str | None = None


@dataclass(frozen=True)
class AssemblyRequest:
    """Examples, and what to make of them.

    Attributes:
        examples: The examples.
        tokenizer: Name or path of the tokenizer; by default the service's.
        spec: Template, truncation, policy and matrices.
        parsing: How segments are parsed; its items are those of the examples.
        padded: All examples to a common length, as a batch of a stream.
    """

    examples: tuple[ExampleTexts, ...]
    tokenizer: str | None
    spec: AssemblySpec
    parsing: FeatureRequest
    padded: bool = False


Found = Mapping[SegmentText, Source | ParsebankError]


class FeatureAssembler:
    """Answers what a trainer would see. Belongs to one event loop.

    Args:
        settings: Limits and defaults.
        store: Where parses are looked up.
        pipeline: Parses and keeps the segments.
        adhoc: Where features are appended.
    """

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
        """Answer every example with its arrays or its own error.

        Raises:
            UnknownNameError: No such parser, language or tokenizer.
            TextTooLongError: A padded batch would be too large.
        """
        tokenizer = await self.tokenizer(request.tokenizer)
        generation = self._store.parses.generation
        found = await self._parse(request)
        return await asyncio.to_thread(self._finish, request, tokenizer, found, generation)

    async def tokenizer(self, name: str | None) -> LoadedTokenizer:
        """A tokenizer; by default the service's.

        Raises:
            UnknownTokenizerError: There is none of this name.
        """
        return await self._pipeline.tokenizers.get(name or self._settings.tokenizer)

    async def check(self, keys: Sequence[str]) -> None:
        """Refuse keys that the store does not hold.

        Raises:
            SpecError: A key is not 32 hexadecimal digits.
            UnknownKeyError: There is no parse under a key.
        """
        held = await asyncio.to_thread(self._store.parses.contains, keys)
        if missing := [key for key, here in zip(keys, held, strict=True) if not here]:
            raise _unknown_keys(missing)

    async def stored(
        self, keys: Sequence[str], tokenizer: LoadedTokenizer, spec: AssemblySpec
    ) -> AssemblyAnswer:
        """The features of one example from the store alone.

        Args:
            keys: Parse keys of its segments, in order.
            tokenizer: Makes the pieces.
            spec: Template, truncation, policy and matrices.

        Raises:
            SpecError: A key is not 32 hexadecimal digits, or the example cannot be made to fit.
            UnknownKeyError: There is no parse under a key.
            TextTooLongError: Its matrices would be too large.
        """
        return await asyncio.to_thread(self._stored, keys, tokenizer, spec)

    async def _parse(self, request: AssemblyRequest) -> Found:
        """The outcome of each distinct segment; each language is a request to the pipeline."""
        groups: dict[str | None, dict[SegmentText, None]] = {}
        for example in request.examples:
            for segment in example.segments:
                groups.setdefault(segment.lang or request.parsing.lang, {})[segment] = None
        answers = await asyncio.gather(
            *(
                self._pipeline.run(_group_request(request.parsing, lang, segments))
                for lang, segments in groups.items()
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
        if request.parsing.store:
            self._append(examples, tokenizer, generation)
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

    def _source(self, record: ParseRecord) -> Source:
        try:
            name = self._store.resolve(record.parser).get("name", record.parser)
        except UnknownKeyError:
            name = record.parser
        return Source(record.key, record.lang, record.parser, name, cached=True, parse=record.parse)

    def _assembled(
        self,
        examples: Sequence[Example | FailedExample],
        tokenizer: LoadedTokenizer,
        spec: AssemblySpec,
        padded: bool,
    ) -> AssemblyAnswer:
        assembler = Assembler(self._settings, tokenizer.special_tokens, spec, padded)
        return AssemblyAnswer(tokenizer, spec, padded, assembler.assemble(examples))

    def _append(
        self,
        examples: Sequence[Example | FailedExample],
        tokenizer: LoadedTokenizer,
        generation: int,
    ) -> None:
        for example in examples:
            if isinstance(example, Example):
                segments = [_adhoc_segment(segment) for segment in example.segments]
                self._adhoc.add(tokenizer, segments, generation)


def _group_request(
    parsing: FeatureRequest, lang: str | None, segments: Iterable[SegmentText]
) -> FeatureRequest:
    return replace(parsing, lang=lang, items=tuple(segment.item for segment in segments))


def _source(item: ItemFeatures | ParsebankError, answer: FeatureAnswer) -> Source | ParsebankError:
    if isinstance(item, ParsebankError):
        return item
    parser = answer.parser
    return Source(item.key, answer.lang, parser.fingerprint, parser.name, item.cached, item.parse)


def _prepare(
    found: Iterable[Source | ParsebankError], tokenizer: LoadedTokenizer
) -> dict[str, Prepared | ParsebankError]:
    """The pieces of each distinct parse, by its key."""
    sources = {source.key: source for source in found if isinstance(source, Source)}
    encoded = tokenizer.encode_batch([source.parse.text for source in sources.values()])
    pairs = zip(sources.items(), encoded, strict=True)
    return {key: _with_pieces(source, *pieces) for (key, source), pieces in pairs}


def _with_pieces(
    source: Source, input_ids: NDArray[np.int32], offsets: NDArray[np.int32]
) -> Prepared | ParsebankError:
    try:
        return Prepared(source, segment_features(source.parse, input_ids, offsets))
    except ParsebankError as error:
        return error


def _example(
    texts: ExampleTexts, found: Found, prepared: Mapping[str, Prepared | ParsebankError]
) -> Example | FailedExample:
    segments: list[Prepared] = []
    for number, text in enumerate(texts.segments):
        outcome = found[text]
        ready = prepared[outcome.key] if isinstance(outcome, Source) else outcome
        if isinstance(ready, ParsebankError):
            error = ready if len(texts.segments) == 1 else _in_segment(ready, number)
            return FailedExample(texts.example_id, error)
        segments.append(ready)
    if not segments:
        return FailedExample(texts.example_id, SpecError("the example has no segment; give one"))
    return Example(texts.example_id, tuple(segments))


def _in_segment(error: ParsebankError, number: int) -> ParsebankError:
    return type(error)(f"segment {number}: {error.message}", **error.detail, segment=number)


def _unknown_keys(missing: Sequence[str]) -> UnknownKeyError:
    return UnknownKeyError(
        f"the store has no parse under {', '.join(dict.fromkeys(missing))}; keys are in the "
        "answers of /parse and /features, and depend on the parser",
        keys=list(dict.fromkeys(missing)),
    )


def _usable(prepared: Prepared | ParsebankError) -> Prepared:
    if isinstance(prepared, ParsebankError):
        raise prepared
    return prepared


def _adhoc_segment(prepared: Prepared) -> AdhocSegment:
    source = prepared.source
    return AdhocSegment(
        source.key, source.lang, source.parser, source.parse.text, prepared.features
    )
