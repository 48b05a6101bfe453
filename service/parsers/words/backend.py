"""Parsers of given words: those of UDPipe or of the request, trees by an exported program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

import ufal.udpipe

from service.parsers.base import (
    Backend,
    Limits,
    ModelFile,
    Outcome,
    ParseInput,
    ParserIdentity,
    attempt,
)
from service.parsers.bulk import BulkParser
from service.parsers.columns import Annotation, Columns
from service.parsers.onnx import onnx_version, read_tokenizer, wants_gpu
from service.parsers.surface import Surface, joined_surface, within_limit
from service.parsers.udpipe.backend import UdpipeParser, udpipe_version
from service.parsers.words.encoding import Sentence, encode_sentence
from service.parsers.words.folder import FAMILY, SEGMENTATION, find_word_parsers, read_card
from service.parsers.words.program import Program
from syntax import Parse
from syntax.errors import ModelLoadError, ParsebankError, UnparsableTextError
from syntax.parsing.folder import TOKENIZER

_BATCH_PIECES: Final = 4_096


class WordParser(BulkParser):
    """A parser of given words; without a loaded program each process loads it at its first text."""

    lot_words = 4_000
    lot_texts = 256

    def __init__(
        self,
        model: ModelFile,
        identity: ParserIdentity,
        program: Program | None = None,
    ) -> None:
        super().__init__(identity)
        self._folder, self._loaded = model.path, program
        self._card = read_card(model.path)
        self._tokenizer = read_tokenizer(model.path / TOKENIZER, "add the model again")
        self._segmenter = _read_segmenter(model, identity)

    @cached_property
    def _program(self) -> Program:
        return self._loaded or Program(self._folder, self._card, gpu=wants_gpu("auto"))

    def _together(self, items: Sequence[ParseInput], limits: Limits) -> list[Outcome]:
        texts = [attempt(self._sentences, item, limits) for item in items]
        sound = [one for found in texts if isinstance(found, list) for one in found]
        trees = iter(self._annotated(sound))
        return [
            found
            if isinstance(found, ParsebankError)
            else attempt(_finished, item, [(one.surface, next(trees)) for one in found])
            for item, found in zip(items, texts, strict=True)
        ]

    def _sentences(self, item: ParseInput, limits: Limits) -> list[Sentence]:
        limit, way = limits.max_words_per_sentence, "raise max_words_per_sentence"
        if self._card.max_words < limit:  # no setting helps against the encoder
            limit, way = self._card.max_words, "choose a parser that reads longer ones"
        found = []
        for form, surface in self._segmented(item):
            first = 0
            for part in within_limit(item.joined, surface, limit, item.long_sentences, way):
                own = form[first : first + part.word_count]
                sentence = encode_sentence(item.joined, part, own, self._tokenizer, self._card)
                found.append(sentence)
                first += part.word_count
        return found

    def _segmented(self, item: ParseInput) -> list[tuple[list[str], Surface]]:
        if item.mode == "pretokenized" and item.tokens is not None:
            return [(list(item.tokens), joined_surface(item.tokens))]
        if self._segmenter is None:
            raise UnparsableTextError(
                f"{self._identity.name} has no UDPipe model to find words with; send tokens in "
                "the mode pretokenized, or add the model again with a UDPipe model",
                parser=self._identity.name,
            )
        return self._segmenter.segmented(item)

    def _annotated(self, sentences: Sequence[Sentence]) -> list[Annotation]:
        found: dict[int, Annotation] = {}
        for batch in _batches(sentences):
            trees = self._program.annotations([sentences[at] for at in batch])
            found.update(zip(batch, trees, strict=True))
        return [found[at] for at in range(len(sentences))]


def load_word_parser(model: ModelFile, identity: ParserIdentity, device: str) -> WordParser:
    """Load a parser and try it on one word.

    On the CPU forked workers share the loaded parser; a GPU's memory cannot be shared: there the
    parser is only tried, on the CPU, and every worker loads it at its first text.
    """
    parser = WordParser(model, identity, Program(model.path, read_card(model.path), gpu=False))
    parser.parse(ParseInput("pretokenized", tokens=("a",)), Limits())
    return WordParser(model, identity) if wants_gpu(device) else parser


def word_parser_version() -> str:
    return f"3, {onnx_version()}"


WORD_PARSER: Final = Backend(
    FAMILY,
    find_word_parsers,
    word_parser_version,
    load_word_parser,
    options={"decoding": "mst", "udpipe": udpipe_version()},
    bulk=True,
)


def _batches(sentences: Sequence[Sentence]) -> Iterator[list[int]]:
    batch: list[int] = []
    for at in sorted(range(len(sentences)), key=lambda at: len(sentences[at].ids)):
        if batch and (len(batch) + 1) * len(sentences[at].ids) > _BATCH_PIECES:
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def _finished(item: ParseInput, sentences: Sequence[tuple[Surface, Annotation]]) -> Parse:
    columns = Columns(item.joined)
    for surface, words in sentences:
        columns.add(surface, words)
    return columns.parse()


def _read_segmenter(model: ModelFile, identity: ParserIdentity) -> UdpipeParser | None:
    path = model.path / SEGMENTATION
    if path not in model.parts:
        return None
    found = ufal.udpipe.Model.load(str(path))
    if found is None or found.newTokenizer("") is None:
        raise ModelLoadError(
            f"{path} is no UDPipe 1 model with a tokenizer; add the model again", path=str(path)
        )
    return UdpipeParser(found, identity)
