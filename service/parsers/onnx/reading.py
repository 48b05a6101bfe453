"""One text being read: which window comes next, and what is found in it.

A long text is read in windows. A window begins where the sentence begins that the one before did
not end, so every sentence is read whole, behind what stands before it in its window, and what is
found depends on the text alone.

Letters in shapes: ``L`` pieces of a window, ``T`` tokens, ``W`` words, ``D`` width of the encoder.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

import numpy as np

from service.parsers.base import Limits, ParseInput
from service.parsers.columns import Annotation, Columns
from service.parsers.onnx.folder import Labels
from service.parsers.onnx.programs import Floats, Ints, WindowStates, mean_pieces
from service.parsers.surface import Surface, joined_surface, within_limit
from syntax import Parse
from syntax.errors import SentenceTooLongError
from syntax.parsing.pieces import LINE, PARAGRAPH, SPACE, Pieces
from syntax.parsing.scripts import apply_split_script
from syntax.spans import word_spans

_MARGIN: Final = 12
"""Pieces before the end of a window in which the end of a sentence is not yet believed."""

_TOKEN_END: Final = 1
_SENTENCE_END: Final = 2


@dataclass(frozen=True, slots=True)
class Found:
    """A sentence that has its words and not yet its tree.

    Attributes:
        surface: Its tokens.
        form: Of each word.
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
        item: The text.
        pieces: Its pieces.
        labels: Of the parser.
        usual: Pieces of a window.
        most: Pieces of the window of a sentence that is longer.
        limits: How many words a sentence may have.
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
        self._usual, self._most = usual, most
        self._scripts = labels.split
        self._ends_token = LINE if labels.spaces else SPACE
        self._pieces, self._at, self._size = pieces, 0, usual
        self._continues = False
        self._error: SentenceTooLongError | None = None
        self._columns = Columns(self._text)
        self._is_given = item.tokens is not None and item.mode != "retokenize"
        if self._is_given:
            self._pieces, self._size = self._fitting(pieces), most

    @property
    def is_done(self) -> bool:
        """Whether all of the text is read."""
        return self._error is not None or self._at >= len(self._pieces)

    @property
    def window(self) -> Pieces:
        """The pieces to be read next."""
        return self._pieces.part(self._at, self._at + self._size)

    def take(self, read: WindowStates) -> list[Found]:
        """The sentences of the window, those over the limit of words in parts.

        Where none ends in it, there are none, and the next window is larger. A sentence that is
        longer than the largest window or the limit, and must not be split, is the text's error, and
        the end of its reading.
        """
        try:
            return list(self._taken(self.window, read))
        except SentenceTooLongError as error:
            self._error = error
            return []

    def add(self, found: Found, annotation: Annotation) -> None:
        """A sentence's tree and tags."""
        self._columns.add(found.surface, annotation)

    def parse(self) -> Parse:
        """The finished parse.

        Raises:
            NoSentenceError: No word was found.
            SentenceTooLongError: A sentence was too long.
        """
        if self._error is not None:
            raise self._error
        return self._columns.parse()

    def _taken(self, window: Pieces, read: WindowStates) -> Iterator[Found]:
        if self._is_given:
            self._at = len(self._pieces)
            sentences = [self._given(window, read)]
        else:
            kinds = self._kinds(window, read.boundary)
            continues, self._continues = self._continues, False
            end = self._end(kinds)
            self._at += end
            self._size = self._usual if end else self._most
            sentences = list(self._sentences(window, kinds[:end], read)) if end else []
            if continues and sentences:
                surface, form, spans = sentences[0]
                sentences[0] = replace(surface, continues=True), form, spans
            self._continues |= continues and not sentences
        for sentence in sentences:
            yield from self._within_limit(*sentence, read)

    def _fitting(self, pieces: Pieces) -> Pieces:
        """Of given tokens, the first pieces of each, as many for every token as fit a window."""
        if len(pieces) <= self._most:
            return pieces
        surface = joined_surface(self._item.tokens or ())
        if len(surface.start) > self._most:
            raise self._too_long(len(surface.start))
        first, last = pieces.within(surface.start, surface.end).T
        share = self._most // len(first)
        kept = np.concatenate(
            [np.arange(a, min(a + share, b + 1)) for a, b in zip(first, last, strict=True)]
        )
        return Pieces(pieces.ids[kept], pieces.start[kept], pieces.end[kept], pieces.surface[kept])

    def _kinds(self, window: Pieces, boundary: Floats) -> Ints:
        """What each piece is. A blank line ends a sentence, a line, and mostly a space, a token."""
        kinds: Ints = boundary.argmax(1)
        white = window.surface % 4
        kinds = np.maximum(kinds, np.where(white >= self._ends_token, _TOKEN_END, 0))
        if self._item.mode == "raw":
            kinds[white == PARAGRAPH] = _SENTENCE_END
        else:
            kinds = np.minimum(kinds, _TOKEN_END)
        if self._at + len(window) == len(self._pieces):
            kinds[-1] = _SENTENCE_END
        return kinds

    def _end(self, kinds: Ints) -> int:
        """How many pieces of the window belong to sentences that end in it.

        Where none ends in the largest window, its end is made one, or is an error.
        """
        ends = np.flatnonzero(kinds == _SENTENCE_END) + 1
        if self._at + len(kinds) == len(self._pieces):
            return len(kinds)
        sure = ends[ends <= len(kinds) - _MARGIN]
        if len(sure):
            return int(sure[-1])
        if len(ends) and ends[-1] < len(kinds):
            return int(ends[-1])
        if self._size < self._most:
            return 0
        tokens = np.flatnonzero(kinds[:-_MARGIN] >= _TOKEN_END) + 1
        if self._item.long_sentences == "refuse":
            raise self._too_long(len(tokens))
        end = int(tokens[-1]) if len(tokens) else len(kinds)
        kinds[end - 1] = _SENTENCE_END
        self._continues = True
        return end

    def _sentences(
        self, window: Pieces, kinds: Ints, read: WindowStates
    ) -> Iterator[tuple[Surface, list[str], Ints]]:
        """Tokens, forms and pieces of the words of each sentence."""
        last = np.flatnonzero(kinds >= _TOKEN_END)
        first = np.concatenate([[0], last[:-1] + 1])
        spans = np.stack([first, last], axis=1)
        scripts = mean_pieces(read.split, spans).argmax(1)
        starts, ends = window.start[first].tolist(), window.end[last].tolist()
        cuts = np.flatnonzero(kinds[last] == _SENTENCE_END) + 1
        before = 0
        for cut in cuts.tolist():
            tokens = slice(before, cut)
            yield self._words(window, starts[tokens], ends[tokens], scripts[tokens], spans[tokens])
            before = cut

    def _given(self, window: Pieces, read: WindowStates) -> tuple[Surface, list[str], Ints]:
        """The sentence of given tokens."""
        surface = joined_surface(self._item.tokens or ())
        starts, ends = list(surface.start), list(surface.end)
        spans = window.within(starts, ends)
        scripts = np.zeros(len(spans), np.int64)
        if self._item.mode == "tokens_mwt":
            scripts = mean_pieces(read.split, spans).argmax(1)
        return self._words(window, starts, ends, scripts, spans)

    def _words(
        self, window: Pieces, starts: list[int], ends: list[int], scripts: Ints, spans: Ints
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
        spans = window.within(*word_spans(self._text, starts, ends, firsts, form))
        return Surface(starts, ends, counts), form, spans

    def _within_limit(
        self, surface: Surface, form: list[str], spans: Ints, read: WindowStates
    ) -> Iterator[Found]:
        limit = self._limits.max_words_per_sentence
        first = 0
        for part in within_limit(self._text, surface, limit, self._item.long_sentences):
            words = slice(first, first + part.word_count)
            index = np.concatenate([np.arange(count) for count in part.words])
            yield Found(part, form[words], mean_pieces(read.states, spans[words]), index)
            first += part.word_count

    def _too_long(self, words: int) -> SentenceTooLongError:
        return SentenceTooLongError(
            f"a sentence has more than {words} words, and the parser reads {self._most} pieces of "
            "words at a time. Split it, choose a parser that reads longer ones, or ask for "
            "`long_sentences=split`",
            words=words,
            limit=self._most,
        )
