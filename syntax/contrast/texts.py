"""Trees that samples are drawn from: one for each segment of each example of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from syntax.compiled import njit
from syntax.contrast.draws import Index, IntArray
from syntax.errors import InputError
from syntax.matrices.offsets import Offsets, offsets_of


class Texts(NamedTuple):
    """T segments of B examples; their N pieces that belong to words lie end to end.

    Other pieces are left out, so that adjacent pieces are adjacent in the text. ``column`` (N,) is
    in the row of the batch, ``parent`` (N,) within the segment, -1 at roots.
    """

    column: IntArray
    parent: IntArray
    offsets: Offsets
    example_offsets: Offsets


_NEEDED: Final = ("parents", "word_ids", "segment_ids")


def texts_of(batch: Mapping[str, NDArray[Any]]) -> Texts:
    missing = [name for name in _NEEDED if name not in batch]
    if missing:
        raise InputError(f"the batch has no {missing[0]}; samples need {', '.join(_NEEDED)}")
    parents, words, segments = (batch[name] for name in _NEEDED)
    if not parents.shape == words.shape == segments.shape:
        raise InputError(
            f"parents, word_ids and segment_ids have shapes {parents.shape}, {words.shape} and "
            f"{segments.shape}; they must be equal"
        )
    row, column = np.nonzero(words >= 0)
    number = segments[row, column]
    starts = np.flatnonzero(np.diff(row, prepend=-1) | np.diff(number, prepend=-1))
    place = np.full((len(parents), parents.shape[1] + 1), -1, np.int64)
    place[row, column] = np.arange(len(row))
    # A parent of -1 is the last column, where no piece is.
    above = place[row, parents[row, column]]
    first = np.repeat(starts, np.diff(starts, append=len(row)))
    return Texts(
        column.astype(np.int32),
        np.where(above >= first, above - first, -1).astype(np.int32),
        np.append(starts, len(row)).astype(np.int64),
        offsets_of(np.bincount(row[starts], minlength=len(parents))),
    )


class Shape(NamedTuple):
    """Subtree of each of n pieces; the height in edges. *Shape:* (n,) each, int32."""

    size: IntArray
    height: IntArray
    first: IntArray
    last: IntArray


@njit(cache=True, nogil=True)
def measure(parent: IntArray) -> Shape:
    count = len(parent)
    place = np.arange(count).astype(np.int32)
    shape = Shape(np.zeros(count, np.int32), np.zeros(count, np.int32), place, place.copy())
    for node in range(count):
        at, edges = node, 0
        while at >= 0:
            shape.size[at] += 1
            shape.height[at] = max(shape.height[at], edges)
            shape.first[at] = min(shape.first[at], node)
            shape.last[at] = max(shape.last[at], node)
            at, edges = parent[at], edges + 1
    return shape


@njit(cache=True, nogil=True)
def is_below(parent: IntArray, node: Index, top: Index) -> bool:
    while node >= 0 and node != top:
        node = parent[node]
    return node == top


class Tour(NamedTuple):
    """Nodes of a forest, parents first, and the bounds of each subtree among them. (n,) each."""

    nodes: IntArray
    enter: IntArray
    leave: IntArray


@njit(cache=True, nogil=True)
def tour_of(parent: IntArray, shape: Shape) -> Tour:
    count = len(parent)
    enter, free = np.empty(count, np.int32), np.empty(count, np.int32)
    start = 0
    # A parent's subtree is larger than those of its children, so its start is known first.
    for node in _largest_first(shape.size):
        above = parent[node]
        if above < 0:
            enter[node] = start
            start += shape.size[node]
        else:
            enter[node] = free[above]
            free[above] += shape.size[node]
        free[node] = enter[node] + 1
    nodes = np.empty(count, np.int32)
    nodes[enter] = np.arange(count).astype(np.int32)
    return Tour(nodes, enter, enter + shape.size)


@njit(cache=True, nogil=True)
def _largest_first(sizes: IntArray) -> IntArray:
    count = len(sizes)
    place = np.zeros(count + 1, np.int32)
    for size in sizes:
        place[size - 1] += 1
    for size in range(count - 1, -1, -1):
        place[size] += place[size + 1]
    # Now place[size] is the number of nodes with larger subtrees.
    nodes = np.empty(count, np.int32)
    for node in range(count):
        nodes[place[sizes[node]]] = node
        place[sizes[node]] += 1
    return nodes


@njit(cache=True, nogil=True)
def holds(tour: Tour, top: Index, node: Index) -> bool:
    return bool(tour.enter[top] <= tour.enter[node] < tour.leave[top])
