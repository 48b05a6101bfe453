"""The state of a text that is read in windows.

A window begins where the sentence begins that the one before did not end, so sentences are read
whole, each behind the text before it in its window. The result depends on the text alone. A
sentence that is longer than the encoder reads is read in several windows, but has one tree.

Letters in shapes: ``L`` pieces of a window, ``T`` tokens, ``W`` words, ``D`` width of the encoder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np

from service.parsers.base import Limits, ParseInput
from service.parsers.columns import Annotation, Columns
from service.parsers.surface import Surface, joined_surface, within_limit
from service.parsers.text.folder import Labels
from service.parsers.text.programs import Floats, Ints, WindowStates, mean_pieces
from syntax import Parse
from syntax.errors import SentenceTooLongError
from syntax.parsing.pieces import LINE, PARAGRAPH, SENTENCE_END, SPACE, TOKEN_END, Pieces
from syntax.parsing.scripts import apply_split_script
from syntax.spans import word_spans

_MARGIN: Final = 12
"""Pieces before the end of a window in which the end of a sentence is not yet believed."""


@dataclass(frozen=True, slots=True)
class Found:
    """A sentence with words, but without a tree.

    Attributes:
        means: Mean of the states of each word's pieces. *Shape:* (W, D).
        index: Place of each word in its token. *Shape:* (W,).
    """

    surface: Surface
    form: list[str]
    means: Floats
    index: Ints


class Reading:
    """A text that is read window by window.

    Args:
        usual: Pieces of a window.
        most: Pieces of the windows of a sentence that is longer.
    """

    def __init__(
        self,
        item: ParseInput,
        pieces: Pieces,
        labels: Labels,
        usual: int,
        most: int,
        limits: Limits,
    ) -> None:
        self._item, self._text, self._limits = item, item.joined, limits
        self._scripts = labels.split
        self._ends_token = LINE if labels.spaces else SPACE
        self._is_given = item.tokens is not None and item.mode != "retokenize"
        self._usual, self._most = usual, most
        self._pieces, self._at, self._size = pieces, 0, usual
        self._first = 0
        self._held: list[_Part] = []
        self._error: SentenceTooLongError | None = None
        self._columns = Columns(self._text)

    @property
    def is_done(self) -> bool:
        return self._error is not None or self._at >= len(self._pieces)

    @property
    def window(self) -> Pieces:
        return self._pieces.part(self._at, self._at + self._size)

    def take(self, read: WindowStates) -> list[Found]:
        """Sentences that end in the window, those over the limit of words in parts.

        Where none ends, the window is read again, larger, and then the sentence in several windows.
        A sentence over the limit that must not be split is the text's error, and ends its reading.
        """
        kinds = self._kinds(self.window, read.boundary)
        end = self._end(kinds)
        if not end and self._size < self._most:
            self._size = self._most
            return []
        taken = end or len(kinds) - _MARGIN
        self._held.append(_Part(kinds[:taken], read.states[:taken], read.split[:taken]))
        self._at += taken
        if not end:
            return []
        pieces = self._pieces.part(self._first, self._at)
        self._first, self._size = self._at, self._usual
        held, self._held = _joined(self._held), []
        try:
            return list(self._found(pieces, held))
        except SentenceTooLongError as error:
            self._error = error
            return []

    def add(self, found: Found, annotation: Annotation) -> None:
        self._columns.add(found.surface, annotation)

    def parse(self) -> Parse:
        if self._error is not None:
            raise self._error
        return self._columns.parse()

    def _kinds(self, window: Pieces, boundary: Floats) -> Ints:
        """Classes of pieces; a blank line ends a sentence, a line, and mostly a space, a token."""
        kinds: Ints = boundary.argmax(1)
        white = window.surface % 4
        kinds = np.maximum(kinds, np.where(white >= self._ends_token, TOKEN_END, 0))
        if self._item.mode == "raw":
            kinds[white == PARAGRAPH] = SENTENCE_END
        else:
            kinds = np.minimum(kinds, TOKEN_END)
        if self._at + len(window) == len(self._pieces):
            kinds[-1] = SENTENCE_END
        return kinds

    def _end(self, kinds: Ints) -> int:
        """End of the last sentence that surely ends in the window, in pieces; 0 if none does."""
        if self._at + len(kinds) == len(self._pieces):
            return len(kinds)
        ends = np.flatnonzero(kinds == SENTENCE_END) + 1
        sure = ends[ends <= len(kinds) - _MARGIN]
        return int(sure[-1]) if len(sure) else 0

    def _found(self, pieces: Pieces, part: _Part) -> Iterator[Found]:
        if self._is_given:
            sentences = iter([self._given(pieces, part)])
        else:
            sentences = self._sentences(pieces, part)
        for surface, form, spans in sentences:
            limit, first = self._limits.max_words_per_sentence, 0
            for fitting in within_limit(self._text, surface, limit, self._item.long_sentences):
                words = slice(first, first + fitting.word_count)
                index = np.concatenate([np.arange(count) for count in fitting.words])
                means = mean_pieces(part.states, spans[words])
                yield Found(fitting, form[words], means, index)
                first += fitting.word_count

    def _sentences(self, pieces: Pieces, part: _Part) -> Iterator[tuple[Surface, list[str], Ints]]:
        last = np.flatnonzero(part.kinds >= TOKEN_END)
        spans = np.stack([np.concatenate([[0], last[:-1] + 1]), last], axis=1)
        scripts = mean_pieces(part.split, spans).argmax(1)
        starts, ends = pieces.start[spans[:, 0]].tolist(), pieces.end[last].tolist()
        first = 0
        for end in (np.flatnonzero(part.kinds[last] == SENTENCE_END) + 1).tolist():
            tokens = slice(first, end)
            yield self._words(pieces, starts[tokens], ends[tokens], scripts[tokens], spans[tokens])
            first = end

    def _given(self, pieces: Pieces, part: _Part) -> tuple[Surface, list[str], Ints]:
        surface = joined_surface(self._item.tokens or ())
        starts, ends = list(surface.start), list(surface.end)
        spans = pieces.within(starts, ends)
        scripts = np.zeros(len(spans), np.int64)
        if self._item.mode == "tokens_mwt":
            scripts = mean_pieces(part.split, spans).argmax(1)
        return self._words(pieces, starts, ends, scripts, spans)

    def _words(
        self, pieces: Pieces, starts: list[int], ends: list[int], scripts: Ints, spans: Ints
    ) -> tuple[Surface, list[str], Ints]:
        form = [self._text[start:end] for start, end in zip(starts, ends, strict=True)]
        several = np.flatnonzero(scripts).tolist()
        if not several:
            return Surface(starts, ends, [1] * len(form)), form, spans
        words = [[token] for token in form]
        for at in several:
            words[at] = apply_split_script(self._scripts[scripts[at]], form[at])
        counts = [*map(len, words)]
        form = [word for token in words for word in token]
        firsts = list(accumulate(counts, initial=0))[:-1]
        spans = pieces.within(*word_spans(self._text, starts, ends, firsts, form))
        return Surface(starts, ends, counts), form, spans


@dataclass(frozen=True, slots=True)
class _Part:
    kinds: Ints
    states: Floats
    split: Floats


def _joined(parts: list[_Part]) -> _Part:
    if len(parts) == 1:
        return parts[0]
    return _Part(
        np.concatenate([part.kinds for part in parts]),
        np.concatenate([part.states for part in parts]),
        np.concatenate([part.split for part in parts]),
    )
