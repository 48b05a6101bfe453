"""The words of the sequences of a batch, their pieces, and their trees.

Letters in shapes: ``B`` sequences, ``L`` positions, ``W`` words of the sequence that has most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

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
        segments, words: Segment of each word, and its number in the text of that; -1 for none.
        first: The word with which its sentence begins here, likewise.
        whole: True if nothing of its sentence was cut.
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
        counts: NDArray[np.int64] = (self.words >= 0).sum(1)
        return counts

    @property
    def pieceless(self) -> NDArray[np.bool_]:
        """Words that have the state of another one. *Shape:* (B, W)."""
        others: NDArray[np.bool_] = self.sources != np.arange(self.sources.shape[1])
        return others & (self.words >= 0)


class _Words(NamedTuple):
    """The words of the texts of a batch, sequence by sequence; sentences count over all texts."""

    rows: NDArray[np.integer]
    segments: NDArray[np.integer]
    numbers: NDArray[np.integer]
    sentences: NDArray[np.int64]
    visible: NDArray[np.bool_]
    of_pieces: NDArray[np.int64]


def word_layout(arrays: Mapping[str, Any]) -> WordLayout:
    """The words of each sequence; without ``parses`` those that have no piece are unknown."""
    if "parses" in arrays and "shown_characters" not in arrays:
        raise SpecError("the batch has parses and no offsets; ask for them with `offsets=True`")
    B, L = arrays["word_ids"].shape
    piece = np.nonzero(arrays["word_ids"] >= 0)
    words = _words_of_parses(arrays, piece) if "parses" in arrays else _words_of(arrays, piece)
    has_piece_N = np.zeros(len(words.rows), bool)
    has_piece_N[words.of_pieces] = True
    # A sentence is there if one of its pieces is, and then its words without a piece are, too.
    shown_N = np.bincount(words.sentences, has_piece_N, 1)[words.sentences] > 0
    kept_N = shown_N & (has_piece_N | words.visible)
    is_cut = np.bincount(words.sentences, ~kept_N, 1) > 0

    kept = np.flatnonzero(kept_N)  # K words
    row_K, sentence_K = words.rows[kept], words.sentences[kept]
    counts_B = np.bincount(row_K, minlength=B)
    start_K = (np.cumsum(counts_B) - counts_B)[row_K]
    column_K = np.arange(len(kept)) - start_K
    begins_K = np.diff(sentence_K, prepend=-1) != 0
    number_K = np.cumsum(begins_K) - 1
    first_K = np.flatnonzero(begins_K)[number_K]
    source_K = _sources(has_piece_N[kept], first_K)
    column_N = np.zeros(len(kept_N), np.int64)
    column_N[kept] = column_K
    pieces_BL = np.full((B, L), _NONE, np.int64)
    pieces_BL[piece] = column_N[words.of_pieces]

    def placed(values_K: NDArray[Any], none: int | bool) -> NDArray[Any]:
        found = np.full((B, counts_B.max(initial=0)), none, bool if none is False else np.int64)
        found[row_K, column_K] = values_K
        return found

    return WordLayout(
        pieces=pieces_BL,
        sources=placed(source_K - start_K, 0),
        sentences=placed(number_K - number_K[start_K], _NONE),
        segments=placed(words.segments[kept], _NONE),
        words=placed(words.numbers[kept], _NONE),
        first=placed(column_K[first_K], 0),
        whole=placed(~is_cut[sentence_K], False),
    )


def tree_heads(layout: WordLayout, parses: Sequence[Sequence[Parse]]) -> NDArray[np.int64]:
    """Head of each word among those of its sequence, from 1; 0 for a root. *Shape:* (B, W), int64.

    -100 where no word is and in sentences of which something was cut.
    """
    heads = word_values(layout, [[parse.head for parse in own] for own in parses])
    found = np.where(heads > 0, heads + layout.first, heads)
    return np.where(layout.whole & (heads >= 0), found, IGNORE)


def word_values(layout: WordLayout, values: Sequence[Sequence[Sequence[int]]]) -> NDArray[np.int64]:
    """A number of each word, from ``values`` by sequence and segment; -100 elsewhere. (B, W)."""
    found = np.full(layout.words.shape, IGNORE, np.int64)
    at = np.nonzero(layout.words >= 0)
    first = _first_words([[len(text) for text in own] for own in values])
    flat = _flat(text for own in values for text in own)
    found[at] = flat[first[at[0], layout.segments[at]] + layout.words[at]]
    return found


_Pieces: TypeAlias = tuple[NDArray[np.intp], ...]


def _words_of_parses(arrays: Mapping[str, Any], piece: _Pieces) -> _Words:
    parses: list[tuple[Parse, ...]] = arrays["parses"]
    flat = [parse for own in parses for parse in own]
    first = _first_words([[parse.word_count for parse in own] for own in parses])
    text = np.nonzero(first >= 0)  # T texts
    counts_T = np.array([parse.word_count for parse in flat], np.int64)
    sentences_T = np.array([len(parse.sentence_first_word) for parse in flat], np.int64)
    rows, segments, start = (np.repeat(of, counts_T) for of in (*text, first[text]))
    begins = np.zeros(len(rows), np.int64)
    begins[_flat(x.sentence_first_word for x in flat) + np.repeat(first[text], sentences_T)] = 1
    shown = arrays["shown_characters"][rows, segments]
    from_N, to_N = (_flat(getattr(x, name) for x in flat) for name in ("word_start", "word_end"))
    return _Words(
        rows=rows,
        segments=segments,
        numbers=np.arange(len(rows)) - start,
        sentences=np.cumsum(begins) - 1,
        visible=(from_N >= shown[:, 0]) & (to_N <= shown[:, 1]),
        of_pieces=first[piece[0], arrays["segment_ids"][piece]] + arrays["word_ids"][piece],
    )


def _words_of(arrays: Mapping[str, Any], piece: _Pieces) -> _Words:
    columns = (piece[0], *(arrays[name][piece] for name in ("segment_ids", "word_ids")))
    (rows, segments, numbers), at, of_pieces = np.unique(
        np.array(columns, np.int64), axis=1, return_index=True, return_inverse=True
    )
    sentence = np.array([rows, segments, arrays["sentence_ids"][piece][at]])
    begins = (np.diff(sentence, prepend=_NONE) != 0).any(0)
    return _Words(
        rows, segments, numbers, np.cumsum(begins) - 1, np.ones(len(rows), bool), of_pieces.ravel()
    )


def _first_words(sizes: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """First word of each of S texts where all lie end to end; -1 for none. *Shape:* (B, S)."""
    S = max(map(len, sizes), default=0)
    counts = np.full((len(sizes), S), _NONE, np.int64)
    for row, own in enumerate(sizes):
        counts[row, : len(own)] = own
    words = counts.clip(min=0)
    first = (np.cumsum(words) - words.ravel()).reshape(words.shape)
    return np.where(counts == _NONE, _NONE, first)


def _flat(rows: Iterable[Iterable[int]]) -> NDArray[np.int64]:
    return np.fromiter(chain.from_iterable(rows), np.int64)


def _sources(has_piece_K: NDArray[np.bool_], first_K: NDArray[np.int64]) -> NDArray[np.int64]:
    """Nearest word with a piece in the sentence of each: before it, else behind it."""
    at = np.arange(len(has_piece_K))
    before = np.maximum.accumulate(np.where(has_piece_K, at, _NONE))
    behind = np.minimum.accumulate(np.where(has_piece_K, at, len(at))[::-1])[::-1]
    return np.where(before >= first_K, before, behind)
