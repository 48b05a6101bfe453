"""UDPipe 1: sentence objects read directly, with exact character spans.

Writing CoNLL-U and reading it back would lose the offsets of multiword tokens and cost ten times
as much as copying the attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import ufal.udpipe

from service.parsers.base import (
    Backend,
    Limits,
    ModelFile,
    Outcome,
    ParseInput,
    ParserIdentity,
    one_by_one,
)
from service.parsers.cards import model_card
from service.parsers.languages import language_of
from service.parsers.udpipe.columns import Columns
from syntax import Parse
from syntax.errors import ModelLoadError, NoSentenceError, SentenceTooLongError

_FORCED_BREAK: Final = 500
"""Tokens after which UDPipe's tokenizer ends a sentence in any case
(``emergency_sentence_split`` in MorphoDiTa's unicode tokenizer)."""

_RAW: Final = "ranges"
_ONE_SENTENCE: Final = "ranges;presegmented"
_LINE_BREAK: Final = re.compile(r"[\r\n]")
_PARAGRAPH: Final = re.compile(r"\r\n\s*\r\n|\n\s*\n|\r\s*\r")


class UdpipeParser:
    """A loaded UDPipe model."""

    def __init__(self, model: Any, identity: ParserIdentity) -> None:
        self._model = model
        self._identity = identity

    @property
    def identity(self) -> ParserIdentity:
        """What the parser is."""
        return self._identity

    def parse(self, item: ParseInput, limits: Limits) -> Parse:
        """Tokenise, check every sentence's length, and only then tag and parse."""
        limit = limits.max_words_per_sentence
        text = item.joined
        if item.mode == "pretokenized" and item.tokens is not None:
            columns = Columns(text)
            sentence = _from_tokens(item.tokens, limit)
            self._analyse(sentence)
            columns.add_joined(sentence, item.tokens)
            return columns.parse()
        return self._parse_text(text, item.mode != "raw", limit)

    def parse_many(self, items: Sequence[ParseInput], limits: Limits) -> Iterator[Outcome]:
        """One after the other: UDPipe gains nothing from company."""
        return one_by_one(self, items, limits)

    def _parse_text(self, text: str, one_sentence: bool, limit: int) -> Parse:
        columns = Columns(text)
        found = self._one(text) if one_sentence else self._split(text, limit)
        for sentence, _ in found:
            _check_length(_word_count(sentence), limit)
        for sentence, shift in found:
            self._analyse(sentence)
            columns.add(sentence, shift)
        if not found:
            raise NoSentenceError(f"the parser found no word in {text[:40]!r}; send running text")
        return columns.parse()

    def _analyse(self, sentence: Any) -> None:
        model = self._model
        if not (model.tag(sentence, "") and model.parse(sentence, "")):
            raise ModelLoadError(f"{self._identity.name} has no tagger or no parser; use another")

    def _one(self, text: str) -> list[tuple[Any, int]]:
        """The text as one sentence; line breaks are shown to UDPipe as spaces, 1:1."""
        return [(sentence, 0) for sentence in self._sentences(_on_one_line(text), _ONE_SENTENCE)]

    def _split(self, text: str, limit: int) -> list[tuple[Any, int]]:
        """Sentences of running text, each with what to add to its offsets.

        Where UDPipe gave up looking for an end, the pieces are put together again, so that the
        limit decides what becomes of a long sentence and not a constant inside the tokenizer.
        """
        found: list[tuple[Any, int]] = []
        for run in _runs(text, self._sentences(text, _RAW)):
            if len(run) == 1:
                found.append((run[0], 0))
                continue
            _check_length(sum(map(_word_count, run)), limit)
            start, end = _start(run[0]), _end(run[-1])
            whole = self._sentences(_on_one_line(text[start:end]), _ONE_SENTENCE)
            found.extend((sentence, start) for sentence in whole)
        return found

    def _sentences(self, text: str, options: str) -> list[Any]:
        tokenizer = self._model.newTokenizer(options)
        tokenizer.setText(text)
        found = []
        sentence = ufal.udpipe.Sentence()
        while tokenizer.nextSentence(sentence):
            found.append(sentence)
            sentence = ufal.udpipe.Sentence()
        return found


def find_udpipe(folder: Path) -> Iterator[ModelFile]:
    """The models in a folder: every ``*.udpipe``, each with an optional card ``<name>.json``."""
    for path in sorted(folder.glob("*.udpipe")):
        card = model_card(path.with_suffix(".json"))
        lang = card.get("language") or language_of(path.stem)
        langs = (lang,) if lang else ()
        name = f"udpipe/{path.stem}"
        yield ModelFile("udpipe.v1", name, path, langs, card.get("sha256"), card)


def load_udpipe(model_file: ModelFile, identity: ParserIdentity, device: str) -> UdpipeParser:  # noqa: ARG001 - it runs on the processor whatever is asked for
    """Load a model and try it on one word.

    Raises:
        ModelLoadError: The file is missing, corrupt, or lacks one of the three components.
    """
    path = model_file.path
    model = ufal.udpipe.Model.load(str(path))
    if model is None:
        raise ModelLoadError(
            f"{path} is missing or is no UDPipe 1 model; fetch it again", path=str(path)
        )
    if model.newTokenizer("") is None:
        raise ModelLoadError(f"{path} has no tokenizer; use a complete model", path=str(path))
    parser = UdpipeParser(model, identity)
    parser.parse(ParseInput("pretokenized", tokens=("a",)), Limits())
    return parser


def udpipe_version() -> str:
    """Version of the UDPipe library."""
    version = ufal.udpipe.Version.current()
    return f"{version.major}.{version.minor}.{version.patch}"


UDPIPE: Final = Backend("udpipe", find_udpipe, udpipe_version, load_udpipe)


def _from_tokens(tokens: tuple[str, ...], limit: int) -> Any:
    _check_length(len(tokens), limit)
    sentence = ufal.udpipe.Sentence()
    for token in tokens:
        sentence.addWord(token)
    return sentence


def _runs(text: str, sentences: list[Any]) -> Iterator[list[Any]]:
    """Group sentences that UDPipe separated only because they were growing too long."""
    run: list[Any] = []
    for sentence in sentences:
        if run and not _was_forced(text, run[-1], sentence):
            yield run
            run = []
        run.append(sentence)
    if run:
        yield run


def _was_forced(text: str, before: Any, after: Any) -> bool:
    if _token_count(before) < _FORCED_BREAK:
        return False
    return _PARAGRAPH.search(text[_end(before) : _start(after)]) is None


def _word_count(sentence: Any) -> int:
    return len(sentence.words) - 1


def _token_count(sentence: Any) -> int:
    inside = sum(token.idLast - token.idFirst for token in sentence.multiwordTokens)
    return _word_count(sentence) - int(inside)


def _start(sentence: Any) -> int:
    multiword = sentence.multiwordTokens
    if len(multiword) and multiword[0].idFirst == 1:
        return int(multiword[0].getTokenRangeStart())
    return int(sentence.words[1].getTokenRangeStart())


def _end(sentence: Any) -> int:
    multiword, words = sentence.multiwordTokens, sentence.words
    if len(multiword) and multiword[len(multiword) - 1].idLast == len(words) - 1:
        return int(multiword[len(multiword) - 1].getTokenRangeEnd())
    return int(words[len(words) - 1].getTokenRangeEnd())


def _on_one_line(text: str) -> str:
    return _LINE_BREAK.sub(" ", text)


def _check_length(words: int, limit: int) -> None:
    if words > limit:
        raise SentenceTooLongError(
            f"a sentence has {words} words; at most {limit} are parsed. Split it, or raise "
            "max_words_per_sentence",
            words=words,
            limit=limit,
        )
