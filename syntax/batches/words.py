"""The words of the sequences of a batch: which pieces are whose, and what trees say of them.

Letters in shapes: ``B`` sequences, ``L`` positions, ``W`` words of the sequence that has most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from syntax.batches.labels import IGNORE
from syntax.errors import SpecError
from syntax.trees.parse import Parse

_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class WordLayout:
    """The words that each sequence shows, in order.

    A word without a piece, such as the second of ``du`` = *de* + *le*, is there if its characters
    are. It takes the state of the nearest word before it in its sentence, else of the next one.

    Attributes:
        pieces: Word of each position, counted within the sequence; -1 for none. *Shape:* (B, L).
        sources: The word whose pieces tell the state of each word: mostly itself. *Shape:* (B, W).
        sentences: Sentence of each word, counted within the sequence; -1 where no word is.
            *Shape:* (B, W).
        segments: Segment of each word, likewise.
        words: Its number in the text of its segment, likewise.
        first: The word with which its sentence begins here, likewise.
        whole: Whether nothing of its sentence was cut. *Shape:* (B, W), bool.
    """

    pieces: NDArray[np.int64]
    sources: NDArray[np.int64]
    sentences: NDArray[np.int64]
    segments: NDArray[np.int64]
    words: NDArray[np.int64]
    first: NDArray[np.int64]
    whole: NDArray[np.bool_]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Words of each sequence. *Shape:* (B,)."""
        counts: NDArray[np.int64] = (self.words >= 0).sum(1)
        return counts

    @property
    def pieceless(self) -> NDArray[np.bool_]:
        """The words that have the state of another one. *Shape:* (B, W)."""
        others: NDArray[np.bool_] = self.sources != np.arange(self.sources.shape[1])
        return others & (self.words >= 0)


class _Sentence(NamedTuple):
    """The words of a sentence that a sequence shows.

    Attributes:
        segment: Of the sequence.
        words: Their numbers in the text. *Shape:* (N,).
        has_piece: Which of them have one. *Shape:* (N,), bool.
        is_whole: Whether these are all its words.
    """

    segment: int
    words: NDArray[np.int64]
    has_piece: NDArray[np.bool_]
    is_whole: bool


def word_layout(arrays: Mapping[str, Any]) -> WordLayout:
    """The words of each sequence.

    Args:
        arrays: What a stream gives; with ``offsets=True`` where it gives ``parses``, too. Without
            parses the words that have no piece are unknown.

    Raises:
        SpecError: There are parses, and no characters to find their words by.
    """
    if "parses" in arrays and "shown_characters" not in arrays:
        raise SpecError("the batch has parses and no offsets; ask for them with `offsets=True`")
    B, L = arrays["word_ids"].shape
    rows = [list(_sentences(arrays, row)) for row in range(B)]
    W = max((sum(len(one.words) for one in row) for row in rows), default=0)
    pieces = np.full((B, L), _NONE, np.int64)
    sentences, segments, words = (np.full((B, W), _NONE, np.int64) for _ in range(3))
    sources, first = np.zeros((B, W), np.int64), np.zeros((B, W), np.int64)
    whole = np.zeros((B, W), bool)
    for row, shown in enumerate(rows):
        start = 0
        for number, one in enumerate(shown):
            here = slice(start, start + len(one.words))
            sentences[row, here], segments[row, here], words[row, here] = (
                number,
                one.segment,
                one.words,
            )
            sources[row, here] = start + _sources(one.has_piece)
            first[row, here], whole[row, here] = start, one.is_whole
            start += len(one.words)
        _number_pieces(arrays, row, segments[row], words[row], pieces[row])
    return WordLayout(pieces, sources, sentences, segments, words, first, whole)


def tree_heads(layout: WordLayout, parses: Sequence[Sequence[Parse]]) -> NDArray[np.int64]:
    """Head of each word among the words of its sequence.

    Args:
        layout: Of the batch.
        parses: Of the segments of each sequence.

    Returns:
        0 for a root, i for the i-th word of the sequence, counted from 1; -100 where no word is
        and in sentences of which something was cut. *Shape:* (B, W), int64.
    """
    heads = word_values(layout, [[parse.head for parse in own] for own in parses])
    found = np.where(heads > 0, heads + layout.first, heads)
    return np.where(layout.whole & (heads >= 0), found, IGNORE)


def word_values(layout: WordLayout, values: Sequence[Sequence[Sequence[int]]]) -> NDArray[np.int64]:
    """A number of each word, from those of whole texts.

    Args:
        layout: Of the batch.
        values: For each sequence, of each segment, the numbers of its text's words.

    Returns:
        -100 where no word is. *Shape:* (B, W), int64.
    """
    found = np.full(layout.words.shape, IGNORE, np.int64)
    for row, own in enumerate(values):
        for segment in np.unique(layout.segments[row]).tolist():
            if segment >= 0:
                here = layout.segments[row] == segment
                found[row, here] = np.asarray(own[segment], np.int64)[layout.words[row, here]]
    return found


def _sentences(arrays: Mapping[str, Any], row: int) -> Iterator[_Sentence]:
    """The sentences of which a sequence shows a piece, in order."""
    known = np.flatnonzero(arrays["word_ids"][row] >= 0)
    segments, words = arrays["segment_ids"][row, known], arrays["word_ids"][row, known]
    numbers = arrays["sentence_ids"][row, known]
    parses = arrays["parses"][row] if "parses" in arrays else None
    for segment in np.unique(segments).tolist():
        for number in np.unique(numbers[segments == segment]).tolist():
            shown = np.unique(words[(segments == segment) & (numbers == number)]).astype(np.int64)
            if parses is None:
                yield _Sentence(segment, shown, np.ones(len(shown), bool), True)
                continue
            every, visible = _visible(
                parses[segment], number, arrays["shown_characters"][row, segment]
            )
            has_piece = np.isin(every, shown)
            kept = has_piece | visible
            yield _Sentence(segment, every[kept], has_piece[kept], bool(kept.all()))


def _visible(
    parse: Parse, sentence: int, shown: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The words of a sentence, and which of them lie within the characters that are shown."""
    ends = [*parse.sentence_first_word, parse.word_count]
    first, end = ends[sentence], ends[sentence + 1]
    starts, stops = np.array(parse.word_start[first:end]), np.array(parse.word_end[first:end])
    return np.arange(first, end), (starts >= shown[0]) & (stops <= shown[1])


def _sources(has_piece: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each word of a sentence, the nearest with a piece: before it, else behind it."""
    at = np.arange(len(has_piece))
    before = np.maximum.accumulate(np.where(has_piece, at, _NONE))
    return np.where(before >= 0, before, int(np.argmax(has_piece)))


def _number_pieces(
    arrays: Mapping[str, Any],
    row: int,
    segments: NDArray[np.int64],
    words: NDArray[np.int64],
    pieces: NDArray[np.int64],
) -> None:
    """Write the word of each position of a sequence; words come in the order of their numbers."""
    known = np.flatnonzero(arrays["word_ids"][row] >= 0)
    size = int(words.max(initial=0)) + 1
    keys = segments * size + words
    real = np.flatnonzero(words >= 0)
    asked = arrays["segment_ids"][row, known].astype(np.int64) * size
    asked += arrays["word_ids"][row, known]
    pieces[known] = real[np.searchsorted(keys[real], asked)]
