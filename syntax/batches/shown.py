"""The words that the sequences of a batch show a piece of, and the trees among them.

It needs no parses; `syntax.batches.words` finds also words without a piece. ``B`` sequences, ``L``
positions, ``W`` words of the sequence that has most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from syntax.batches.answers import INSIDE
from syntax.batches.labels import LocatedSpans
from syntax.trees.brackets import LEAST_WORDS, brackets, constituent_brackets

IntArray = NDArray[np.int32]


class ShownWords(NamedTuple):
    """The words of each sequence, in order, counted within it; -1 where no word is.

    Attributes:
        numbers: Word of each position. *Shape:* (B, L), int32.
        first, last: First and last position of each word. *Shape:* (B, W), int32.
        heads: -1 for a root, and for a word of which truncation removed all that is above.
    """

    numbers: IntArray
    first: IntArray
    last: IntArray
    heads: IntArray
    sentences: IntArray

    def stretches(self) -> Iterator[tuple[int, int, int]]:
        """Sequence, first word and end of the words of each sentence."""
        for row, own in enumerate(self.sentences):
            real = own[own >= 0]
            starts = np.flatnonzero(np.diff(real, prepend=-1)).tolist()
            for start, end in zip(starts, [*starts[1:], len(real)], strict=True):
                yield row, start, end


class BatchBrackets(NamedTuple):
    """The brackets of the sentences of a batch (`syntax.trees.brackets`).

    Attributes:
        rows: For each of S stretches: its sequence; its sentence, counted over the batch among
            those with brackets; the word before it in its sentence, or -1; its first word; its
            last; and the last of its first part. Words are counted within the sequence.
            *Shape:* (S, 6), int32.
        outcomes: Numbers of sentences without brackets, and of examples, by reason.
    """

    rows: IntArray
    outcomes: dict[str, int]


def shown_words(batch: Mapping[str, NDArray[Any]]) -> ShownWords:
    """Words from ``parents``, ``word_ids``, ``segment_ids`` and ``sentence_ids`` of a batch."""
    words, segments = batch["word_ids"], batch["segment_ids"]
    known = words >= 0
    starts = known & (_changes(words) | _changes(segments))
    numbers = np.where(known, starts.cumsum(1, dtype=np.int32) - 1, -1).astype(np.int32)
    shape = len(words), int(numbers.max(initial=-1)) + 1
    first, last, heads, sentences = (np.full(shape, -1, np.int32) for _ in range(4))
    row, column = np.nonzero(known)
    word, above = numbers[row, column], batch["parents"][row, column]
    np.maximum.at(last, (row, word), column)
    head = np.where(above >= 0, numbers[row, above], -1)
    crosses = (head >= 0) & (head != word)
    heads[row[crosses], word[crosses]] = head[crosses]  # the same for all pieces of a word
    row, column = np.nonzero(starts)
    first[row, numbers[row, column]] = column
    own = np.full((2, *shape), -1, np.int32)
    own[:, row, numbers[row, column]] = segments[row, column], batch["sentence_ids"][row, column]
    begins = (own[0] >= 0) & (_changes(own[0]) | _changes(own[1]))
    sentences[:] = np.where(own[0] >= 0, begins.cumsum(1) - 1, -1)
    return ShownWords(numbers, first, last, heads, sentences)


def batch_brackets(shown: ShownWords) -> BatchBrackets:
    rows: list[NDArray[np.int32]] = []
    outcomes = dict.fromkeys(("sentence_not_projective", "sentence_without_its_root"), 0)
    with_brackets: set[int] = set()
    for row, start, end in shown.stretches():
        heads = shown.heads[row, start:end] - start
        heads[shown.heads[row, start:end] < 0] = -1
        if (heads < 0).sum() != 1:
            outcomes["sentence_without_its_root"] += 1
            continue
        found = brackets(heads)
        if found is None:
            outcomes["sentence_not_projective"] += 1
        elif end - start >= LEAST_WORDS:
            rows.append(_placed(row, len(rows), start, found + start))
            with_brackets.add(row)
    outcomes["example_without_brackets"] = len(shown.first) - len(with_brackets)
    return BatchBrackets(np.concatenate([np.empty((0, 6), np.int32), *rows]), outcomes)


def span_brackets(shown: ShownWords, spans: LocatedSpans) -> BatchBrackets:
    """Brackets of the constituents of each sequence, which is one sentence."""
    rows: list[NDArray[np.int32]] = []
    outcomes = dict.fromkeys(("sentence_without_its_root", "constituent_of_parts_of_words"), 0)
    for row in np.unique(spans.row).tolist():
        own = spans.row == row
        if (spans.state[own] != INSIDE).any():
            outcomes["sentence_without_its_root"] += 1
            continue
        start, last = spans.start[own], spans.end[own] - 1
        first_word, last_word = shown.numbers[row, start], shown.numbers[row, last]
        if (shown.first[row, first_word] != start).any() or (
            shown.last[row, last_word] != last
        ).any():
            outcomes["constituent_of_parts_of_words"] += 1
            continue
        found = constituent_brackets(
            zip(first_word.tolist(), (last_word + 1).tolist(), strict=True)
        )
        if len(found):
            rows.append(_placed(row, len(rows), first_word.min(), found))
    outcomes["example_without_brackets"] = len(shown.first) - len(rows)
    return BatchBrackets(np.concatenate([np.empty((0, 6), np.int32), *rows]), outcomes)


def _placed(row: int, sentence: int, start: int, found: IntArray) -> IntArray:
    """Brackets of a sentence whose first word is ``start``, as rows of `BatchBrackets`."""
    before = np.where(found[:, 0] > start, found[:, 0] - 1, -1)
    place = np.broadcast_to(np.array([row, sentence]), (len(found), 2))
    return np.column_stack([place, before, found]).astype(np.int32)


def _changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    changed = np.ones(values.shape, bool)
    changed[:, 1:] = values[:, 1:] != values[:, :-1]
    return changed
