"""Texts for the pipeline from the data of a request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import ufal.udpipe

from service.parsers import Limits, ParseInput
from service.pipeline.inputs import check_input
from syntax.errors import SentenceTooLongError, SpecError

_BLANK_LINES: Final = re.compile(r"(?:\r\n|\r|\n)[^\S\r\n]*(?:\r\n|\r|\n)\s*")
_LINE: Final = re.compile(r"[^\r\n]+")
_EMPTY_LINE: Final = re.compile(r"\n\r?\n")
_LONE_RETURN: Final = re.compile(r"\r(?!\n)")
_WORD: Final = re.compile(r"[^ \t]+")
_LINES_PER_WORD: Final = 4


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A piece of a document that is parsed by itself, and its start in the document."""

    start: int
    item: ParseInput


def cut_text(text: str, limit: int) -> Iterator[DocumentPart]:
    """Cut at blank lines; a paragraph over the limit is left for the pipeline to refuse."""
    start = end = 0
    for cut in (*(found.end() for found in _BLANK_LINES.finditer(text)), len(text)):
        if cut - start > limit and end > start:
            yield DocumentPart(start, ParseInput("raw", text[start:end]))
            start = end
        end = cut
    yield DocumentPart(start, ParseInput("raw", text[start:]))


def cut_lines(text: str) -> Iterator[DocumentPart]:
    for line in _LINE.finditer(text):
        yield DocumentPart(line.start(), ParseInput("sentence", line[0]))


def read_sentences(data: str, form: str, limits: Limits) -> list[Any]:
    """Read UDPipe sentences in one of its input formats; a fault has UDPipe's reason."""
    if _LONE_RETURN.search(data) and form.partition("=")[0] == "conllu":
        # UDPipe 1.4's reader would never come back.
        raise SpecError("the CoNLL-U data has a carriage return without a line feed; remove it")
    reader = ufal.udpipe.InputFormat.newInputFormat(form)
    sentences: list[Any] = []
    for block in _blocks(data, form.partition("=")[0], limits):
        reader.setText(block)
        for sentence in _read(reader, form):
            _check_words(len(sentence.words) - 1, limits)
            sentences.append(sentence)
    return sentences


def _read(reader: Any, form: str) -> Iterator[Any]:
    problem = ufal.udpipe.ProcessingError()
    sentence = ufal.udpipe.Sentence()
    while reader.nextSentence(sentence, problem):
        yield sentence
        sentence = ufal.udpipe.Sentence()
    if problem.occurred():
        raise SpecError(f"Cannot parse the input in '{form}' format: {problem.message}")


def _blocks(data: str, form: str, limits: Limits) -> Iterator[str]:
    """Small blocks: the reader holds the interpreter's lock, 10 s for a sentence of 16 MB."""
    if form == "generic_tokenizer":
        for part in cut_text(data, limits.max_chars_per_text):
            if part.item.joined.strip():
                check_input(part.item, limits)
            yield part.item.joined
        return
    if form == "horizontal":
        longest = max((len(_WORD.findall(line)) for line in data.splitlines()), default=0)
    else:
        # A word has a line of its own, perhaps that of a multiword token, and some empty nodes.
        lines = max(block.count("\n") for block in _EMPTY_LINE.split(data))
        longest = lines // _LINES_PER_WORD
    _check_words(longest, limits)
    yield data


def words_of(sentence: Any, with_tags: bool) -> ParseInput:
    words = list(sentence.words)[1:]
    tags = tuple((word.lemma, word.upostag, word.xpostag, word.feats) for word in words)
    forms = tuple(word.form for word in words)
    return ParseInput("pretokenized", tokens=forms, tags=tags if with_tags else None)


def _check_words(words: int, limits: Limits) -> None:
    limit = limits.max_words_per_sentence
    if words > limit:
        raise SentenceTooLongError(
            f"a sentence of the data has {words} words; at most {limit} are read. Split it, or "
            "raise max_words_per_sentence",
            words=words,
            limit=limit,
        )
