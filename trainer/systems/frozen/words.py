"""From pieces to words: the arrays of a stream with a position for each word, not for each piece.

A word has what its first piece has. Special tokens, later pieces, pieces without a word, and words
of which truncation left no first piece have no position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from syntax.matrices import MATRICES
from syntax.matrices.registry import UNREACHABLE

STREAM_OPTIONS: Final[Mapping[str, Any]] = {"first_pieces": True}
"""Options of `syntax.batches.AssemblySpec` with which words are found."""

POOL: Final = 1
"""Chunks that a stream shuffles together (`OrderPolicy.pool`); states are large."""

PADDING: Final[Mapping[str, Any]] = {
    "input_ids": 0,
    "token_type_ids": 0,
    "attention_mask": False,
    "special_tokens_mask": True,
    "word_ids": -1,
    "sentence_ids": -1,
    "segment_ids": -1,
    "upos": 0,
    "deprel": 0,
    "piece_ids": -1,
    "token_ids": -1,
    "token_starts": False,
    "token_words": 0,
}
"""Values where no word is, in the arrays that have a row of positions for each sequence."""


class _Words(NamedTuple):
    """Places of the words of each sequence.

    Attributes:
        position: Of their first pieces; 0 where no word is. *Shape:* (B, W).
        real: True where a word is. *Shape:* (B, W).
        number: The word that each first piece begins; -1 at other pieces. *Shape:* (B, L).
    """

    position: NDArray[np.intp]
    real: NDArray[np.bool_]
    number: NDArray[np.intp]

    @classmethod
    def of(cls, first: NDArray[np.bool_]) -> _Words:
        counts = first.sum(1)
        real = np.arange(int(counts.max(initial=0))) < counts[:, None]
        position = np.argsort(~first, axis=1, kind="stable")[:, : real.shape[1]]
        number = np.where(first, np.cumsum(first, axis=1) - 1, -1)
        return cls(np.where(real, position, 0), real, number)

    def take(self, values: NDArray[Any], padding: Any) -> NDArray[Any]:
        """Values of first pieces. *Shape:* (B, L, ...) to (B, W, ...)."""
        rows = np.arange(len(values))[:, None]
        taken = values[rows, self.position]
        taken[~self.real] = padding
        return taken

    def take_pairs(self, values: NDArray[Any], padding: Any) -> NDArray[Any]:
        rows = np.arange(len(values))[:, None, None]
        taken: NDArray[Any] = values[rows, self.position[:, :, None], self.position[:, None, :]]
        taken[~(self.real[:, :, None] & self.real[:, None, :])] = padding
        return taken


def word_arrays(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of a batch under the same names, with a position for each word.

    ``offset_mapping`` covers whole words; ``parents`` are words; ``word_states`` is an array,
    float16 (B, W, D), 0 where no word is. Arrays of sequences or examples stay as they are.
    """
    if "first_pieces" not in arrays:
        raise SpecError("the batch has no first_pieces; ask for them with `first_pieces=True`")
    words = _Words.of(arrays["first_pieces"])
    found = {name: value for name, value in arrays.items() if name != "first_pieces"}
    for name in PADDING.keys() & arrays.keys():
        found[name] = words.take(arrays[name], PADDING[name])
    for name in (name for name in arrays if name in MATRICES):
        values, padding = arrays[name], MATRICES.padding(name)
        if padding == UNREACHABLE:
            padding = int(np.iinfo(values.dtype).max)
        take = words.take if values.ndim == 2 else words.take_pairs
        found[name] = take(values, padding)
    found["parents"] = _parents(words, arrays["parents"])
    found["lengths"] = words.real.sum(1).astype(np.int32)
    if "offset_mapping" in arrays:
        found["offset_mapping"] = _characters(words, arrays)
    if "word_states" in arrays:
        found["word_states"] = _states(found, arrays["word_states"])
    return found


def _parents(words: _Words, parents: NDArray[np.int32]) -> NDArray[np.int32]:
    """Number of the word that each word hangs from, -1 at roots and where no word is. (B, W)."""
    above = words.take(parents, -1)
    number = np.take_along_axis(words.number, np.maximum(above, 0), axis=1)
    return np.where(above < 0, -1, number).astype(np.int32)


def _characters(words: _Words, arrays: Mapping[str, Any]) -> NDArray[np.int32]:
    """First character and end of each word. *Shape:* (B, W, 2)."""
    spans = words.take(arrays["offset_mapping"], 0)
    owner = np.maximum.accumulate(words.number, axis=1)
    same = owner >= 0
    for name in ("word_ids", "segment_ids"):
        mine = words.take(arrays[name], -1)
        same &= np.take_along_axis(mine, np.maximum(owner, 0), axis=1) == arrays[name]
    row, column = np.nonzero(same)
    ends = arrays["offset_mapping"][row, column, 1]
    np.maximum.at(spans[..., 1], (row, owner[row, column]), ends)
    return spans


def _states(arrays: Mapping[str, Any], examples: Sequence[Any]) -> NDArray[np.float16]:
    """States of words, whose numbers are in ``arrays``, from those of whole examples. (B, W, D)."""
    B, W = arrays["word_ids"].shape
    states = np.zeros((B, W, examples[0].states.shape[1] if B else 0), np.float16)
    for row, example in enumerate(examples):
        count = int(arrays["lengths"][row])
        before = np.cumsum(example.words) - example.words
        at = before[arrays["segment_ids"][row, :count]] + arrays["word_ids"][row, :count]
        states[row, :count] = example.states[at]
    return states
