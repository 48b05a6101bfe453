"""Requests to ``process``, from the data to the envelope."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from service.lindat.documents import DocumentPart, cut_lines, cut_text, read_sentences, words_of
from service.lindat.models import acknowledgements, header, names_of
from service.lindat.request import LindatRequest, Tokenizer
from service.lindat.sentences import Placed, Shown, annotate, tokenized, write
from service.parsers import Limits, ModelFile, ParseInput, find_parser
from service.pipeline.pipeline import FeaturePipeline
from service.pipeline.records import FeatureRequest, ItemFeatures
from service.settings import Settings
from syntax import Parse
from syntax.errors import NoSentenceError, ParsebankError, SentenceTooLongError

_TURNS: Final = 4
"""Most of a model's queue for one document at a time: a fourth."""


@dataclass(frozen=True, slots=True)
class LindatAnswer:
    """The envelope, and the characters of all words of the result, which a header announces."""

    envelope: dict[str, Any]
    characters: int


async def process(
    pipeline: FeaturePipeline, settings: Settings, request: LindatRequest, keep: bool
) -> LindatAnswer:
    """Answer, or raise any fault of the data. Without ``keep`` new parses are not stored."""
    model = await asyncio.to_thread(find_parser, settings, request.model)
    job = _Job(pipeline, settings, request, model, keep)
    if request.tokenizer is None:
        sentences = await job.read()
    else:
        sentences = await job.tokenize(request.tokenizer)
    return await asyncio.to_thread(job.answer, sentences)


@dataclass(frozen=True, slots=True)
class _Job:
    pipeline: FeaturePipeline
    settings: Settings
    request: LindatRequest
    model: ModelFile
    keep: bool

    @property
    def shown(self) -> Shown:
        return Shown(self.request.tagger, self.request.parser)

    @property
    def follows_tags(self) -> bool:
        """True if the parser uses the given tags, as UDPipe's alone does."""
        alone = self.request.parser and not self.request.tagger
        return alone and self.model.backend == "udpipe.v1"

    @property
    def limits(self) -> Limits:
        return Limits(self.settings.max_chars_per_text, self.settings.max_words_per_sentence)

    async def tokenize(self, options: Tokenizer) -> list[Any]:
        data = self.request.data
        parts = await asyncio.to_thread(self._parts, data, options)
        parses = await self._parse(
            [part.item for part in parts], may_split=not options.presegmented
        )
        pairs = zip(parts, parses, strict=True)
        placed = [Placed(part.start, parse) for part, parse in pairs if parse is not None]
        if not self.follows_tags:
            return await asyncio.to_thread(tokenized, data, placed, options, self.shown)
        bare = Shown(tags=False, heads=False)
        sentences = await asyncio.to_thread(tokenized, data, placed, options, bare)
        return await self._annotated(sentences)

    async def read(self) -> list[Any]:
        request, limits = self.request, self.limits
        sentences = await asyncio.to_thread(read_sentences, request.data, request.input, limits)
        if request.tagger or request.parser:
            return await self._annotated(sentences)
        return sentences

    def answer(self, sentences: Sequence[Any]) -> LindatAnswer:
        request, name = self.request, names_of(self.settings)[self.model.name]
        result = write(sentences, request.output)
        if sentences and request.output.partition("=")[0] == "conllu":
            result = header(self.model, name) + result
        envelope: dict[str, Any] = {
            "model": name,
            "acknowledgements": acknowledgements(self.model),
            "result": result,
        }
        if request.ignored:
            envelope["ignored"] = list(request.ignored)
        words = (word for sentence in sentences for word in list(sentence.words)[1:])
        return LindatAnswer(envelope, sum(len(word.form) for word in words))

    def _parts(self, data: str, options: Tokenizer) -> list[DocumentPart]:
        limit = self.settings.max_chars_per_text
        parts = cut_lines(data) if options.presegmented else cut_text(data, limit)
        return [part for part in parts if part.item.joined.strip()]

    async def _annotated(self, sentences: list[Any]) -> list[Any]:
        items = [words_of(sentence, self.follows_tags) for sentence in sentences]
        parses = await self._parse(items, may_split=False)
        await asyncio.to_thread(self._annotate, sentences, parses)
        return sentences

    def _annotate(self, sentences: Sequence[Any], parses: Sequence[Parse | None]) -> None:
        for sentence, parse in zip(sentences, parses, strict=True):
            if parse is not None:
                annotate(sentence, parse, self.shown)

    async def _parse(self, items: Sequence[ParseInput], may_split: bool) -> list[Parse | None]:
        """Parses in order; ``None`` where the parser found no word."""
        outcomes = await self._run(items)
        if may_split:
            # A text without such sentences keeps the key that every other route gives it.
            long = [
                at for at, item in enumerate(outcomes) if isinstance(item, SentenceTooLongError)
            ]
            again = await self._run([replace(items[at], long_sentences="split") for at in long])
            for at, outcome in zip(long, again, strict=True):
                outcomes[at] = outcome
        return [_parse_of(outcome) for outcome in outcomes]

    async def _run(self, items: Sequence[ParseInput]) -> list[ItemFeatures | ParsebankError]:
        """Outcomes in order; a long document takes turns with other requests."""
        found: list[ItemFeatures | ParsebankError] = []
        turn = self.settings.max_queued_words // _TURNS
        for batch in await asyncio.to_thread(_batches, items, turn):
            # What follows given tags is no parse of the text alone, as the store holds them.
            keep = self.keep and all(item.tags is None for item in batch)
            asked = FeatureRequest(tuple(batch), parser=self.model.name, store=keep)
            answer = await self.pipeline.run(asked)
            found += answer.items
        return found


def _batches(items: Sequence[ParseInput], words: int) -> list[list[ParseInput]]:
    batches: list[list[ParseInput]] = []
    room = 0
    for item in items:
        if not batches or item.words > room:
            batches.append([])
            room = words
        batches[-1].append(item)
        room -= item.words
    return batches


def _parse_of(outcome: ItemFeatures | ParsebankError) -> Parse | None:
    if isinstance(outcome, NoSentenceError):
        return None
    if isinstance(outcome, ParsebankError):
        raise outcome
    return outcome.parse
