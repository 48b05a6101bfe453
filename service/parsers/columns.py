"""Columns of a `syntax.Parse`, filled sentence by sentence by any backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from service.parsers.surface import CONTINUED, Surface
from syntax import DependencyTree, Parse
from syntax.errors import NoSentenceError
from syntax.spans import word_spans

_NOTHING: Final = frozenset({"", "_"})


@dataclass(frozen=True, slots=True)
class Annotation:
    """Columns of the words (W) of one sentence; "" and "_" stand for nothing."""

    form: Sequence[str]
    lemma: Sequence[str | None]
    upos: Sequence[str | None]
    xpos: Sequence[str | None]
    feats: Sequence[str | None]
    head: Sequence[int]
    deprel: Sequence[str]


class Columns:
    """The columns of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.form: list[str] = []
        self.lemma: list[str | None] = []
        self.upos: list[str | None] = []
        self.xpos: list[str | None] = []
        self.feats: list[str | None] = []
        self.head: list[int] = []
        self.deprel: list[str | None] = []
        self.token_start: list[int] = []
        self.token_end: list[int] = []
        self.token_first_word: list[int] = []
        self.sentence_start: list[int] = []
        self.sentence_end: list[int] = []
        self.sentence_first_word: list[int] = []
        self._continued: list[int] = []

    def add(self, surface: Surface, words: Annotation) -> None:
        DependencyTree(words.head, words.deprel)
        self._add_surface(surface)
        self.form += words.form
        self.lemma += _given(words.lemma)
        self.upos += _given(words.upos)
        self.xpos += _given(words.xpos)
        self.feats += _given(words.feats)
        self.head += words.head
        self.deprel += _given(words.deprel)

    def parse(self) -> Parse:
        if not self.form:
            raise NoSentenceError(
                f"the parser found no word in {self.text[:40]!r}; send running text"
            )
        starts, ends = word_spans(
            self.text, self.token_start, self.token_end, self.token_first_word, self.form
        )
        columns = {name: value for name, value in vars(self).items() if name != "_continued"}
        return Parse(word_start=starts, word_end=ends, misc=self._misc(), **columns)

    def _add_surface(self, surface: Surface) -> None:
        first = len(self.form)
        if surface.continues:
            self._continued.append(first)
        self.token_start += surface.start
        self.token_end += surface.end
        self.token_first_word += list(accumulate(surface.words, initial=first))[:-1]
        self.sentence_start.append(surface.start[0])
        self.sentence_end.append(surface.end[-1])
        self.sentence_first_word.append(first)

    def _misc(self) -> list[str | None] | None:
        if not self._continued:
            return None
        misc: list[str | None] = [None] * len(self.form)
        for word in self._continued:
            misc[word] = CONTINUED
        return misc


def _given(values: Sequence[str | None]) -> Sequence[str | None]:
    if _NOTHING.isdisjoint(values):
        return values
    return [None if value in _NOTHING else value for value in values]
