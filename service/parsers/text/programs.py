"""The programs of a parser of running text, run by ONNX Runtime.

The output for a window or a word does not depend on what it is run with, so parses can be kept by
their content. Matrix products are of integers, with steps that training has fixed. Windows are
padded to a length that follows from their own, and only windows of one padded length are run
together.

Letters in shapes: ``B`` windows, ``L`` pieces, ``W`` words, ``H`` ROOT and the words, ``D`` width
of the encoder, ``A`` and ``R`` widths of states, ``C`` classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.parsers.onnx import open_program
from syntax.batches import SpecialTokens
from syntax.parsing.folder import PIECES, RELATIONS, WORDS
from syntax.parsing.pieces import Pieces

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

_REMEDY: Final = "train or pull the model again"

_STEP: Final = 8

_BATCH_PIECES: Final = 1_024
"""Pieces of a batch, so that the states between two layers stay in the processor's cache."""

_RELATION_WORDS: Final = 128
"""Words whose relations are scored together: each takes a vector for every relation."""


@dataclass(frozen=True, slots=True)
class WindowStates:
    """States and scores of a window's pieces, special tokens left out.

    Attributes:
        states: *Shape:* (L, D).
        boundary: Scores of being within a token, at its end, at a sentence's end. *Shape:* (L, 3).
        split: Scores of scripts of tokens. *Shape:* (L, C).
    """

    states: Floats
    boundary: Floats
    split: Floats


@dataclass(frozen=True, slots=True)
class WordStates:
    """Classes and states of words.

    Attributes:
        tags: Class of each word by column. *Shape:* (W,) each.
        arc_dependent, arc_head: Their dot product scores an arc. *Shape:* (H, A).
        relation_dependent, relation_head: Inputs of relation scores. *Shape:* (H, R).
    """

    tags: Mapping[str, Ints]
    arc_dependent: Floats
    arc_head: Floats
    relation_dependent: Floats
    relation_head: Floats


class Programs:
    """The loaded programs of a parser."""

    def __init__(self, folder: Path, columns: Sequence[str], special: SpecialTokens) -> None:
        self._special, self._columns = special, list(columns)
        self._pieces = open_program(folder / PIECES, _REMEDY)
        self._words = open_program(folder / WORDS, _REMEDY)
        self._relations = open_program(folder / RELATIONS, _REMEDY)

    def windows(self, windows: Sequence[Pieces]) -> list[WindowStates]:
        found: dict[int, WindowStates] = {}
        first, outside = len(self._special.prefix), self._special.count(1)
        for batch in _batches([len(window) + outside for window in windows]):
            outputs = self._pieces.run(
                ["states", "boundary", "split"], self._framed([windows[at] for at in batch])
            )
            for at, *arrays in zip(batch, *outputs, strict=True):
                end = first + len(windows[at])
                found[at] = WindowStates(*(array[first:end] for array in arrays))
        return [found[at] for at in range(len(windows))]

    def words(self, means: Floats, index: Ints) -> WordStates:
        """Tags and states of words.

        Args:
            means: Mean of the states of each word's pieces. *Shape:* (W, D).
            index: Place of each word in its token. *Shape:* (W,).
        """
        states = ("arc_dependent", "arc_head", "relation_dependent", "relation_head")
        outputs = self._words.run(
            [*self._columns, *states], {"words": means, "index": index.astype(np.int32)}
        )
        tags = dict(zip(self._columns, outputs, strict=False))
        return WordStates(tags, *outputs[len(self._columns) :])

    def relations(self, dependents: Floats, heads: Floats) -> Floats:
        """Scores of the relations of words with one head each, (W, R). *Shape:* (W, C)."""
        parts = [
            self._relations.run(
                ["scores"],
                {
                    "dependents": dependents[first : first + _RELATION_WORDS],
                    "heads": heads[first : first + _RELATION_WORDS],
                },
            )[0]
            for first in range(0, len(heads), _RELATION_WORDS)
        ]
        return np.concatenate(parts)

    def _framed(self, windows: Sequence[Pieces]) -> dict[str, NDArray[Any]]:
        """Inputs of the first program. *Shape:* (B, L)."""
        prefix, suffix = self._special.prefix, self._special.suffix
        size = _padded(max(map(len, windows)) + self._special.count(1))
        ids = np.full((len(windows), size), self._special.pad_id, np.int32)
        surface, mask = np.zeros(ids.shape, np.int32), np.zeros(ids.shape, bool)
        for row, window in enumerate(windows):
            first, end = len(prefix), len(prefix) + len(window)
            ids[row, :first], ids[row, end : end + len(suffix)] = prefix, suffix
            ids[row, first:end], surface[row, first:end] = window.ids, window.surface
            mask[row, : end + len(suffix)] = True
        return {"ids": ids, "surface": surface, "mask": mask}


def mean_pieces(arrays_LD: Floats, spans: Ints) -> Floats:
    """Mean of the rows of each span (first, last). *Shape:* (spans, D)."""
    first, last = spans.T
    sums = arrays_LD[first]
    longest = int((last - first).max(initial=0))
    for further in range(1, longest + 1):
        has_more = np.flatnonzero(first + further <= last)
        sums[has_more] += arrays_LD[first[has_more] + further]
    means: Floats = sums / (last - first + 1).astype(np.float32)[:, None]
    return means


def _padded(size: int) -> int:
    return -(-size // _STEP) * _STEP


def _batches(sizes: Sequence[int]) -> Iterator[list[int]]:
    groups: dict[int, list[int]] = {}
    for at, size in enumerate(sizes):
        groups.setdefault(_padded(size), []).append(at)
    for length, group in groups.items():
        most = max(_BATCH_PIECES // length, 1)
        for first in range(0, len(group), most):
            yield group[first : first + most]
