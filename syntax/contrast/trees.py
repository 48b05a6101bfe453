"""Tree samples: a subtree, and copies of it with shifted ends or exchanged parts.

Source: Zhang et al. 2022 (Findings of ACL, "Syntax-guided contrastive learning"). Negatives shift
the subtree's span in their release, and exchange parts for neighbouring subtrees in `lr-sib`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from syntax.compiled import njit
from syntax.contrast.base import (
    PADDING,
    Samples,
    Way,
    draw_samples,
    example_seeds,
)
from syntax.contrast.draws import Index, IntArray, State, below, choose, shuffled
from syntax.contrast.texts import Tour, holds, measure, texts_of, tour_of
from syntax.errors import SpecError
from syntax.options import Bounds, Count, check_fields, check_range

_FEWEST_NEGATIVES: Final = 2

_TRIES: Final = 8

_SLACK: Final = 1
"""Pieces by which a negative of `lr_sib` may be larger or smaller than the subtree."""


@dataclass(frozen=True, slots=True)
class TreeSampler:
    """Draws tree samples. Pieces without a word do not count, also not in positions.

    ``synclm``: each piece with a parent and dependents, whose span has ``min_size`` to ``max_size``
    pieces, gives a sample. The positive is the span. The negatives are random windows that contain
    the piece and are as long as the span, one piece longer, or one piece shorter (if the span has
    more than three). None begins where the span does.

    ``lr_sib``: each subtree of ``min_size`` to ``max_size`` pieces gives a sample. The positive is
    the subtree. A negative replaces up to ``exchanges`` of its parts (subtrees without its root) by
    as many neighbours: subtrees of pieces adjacent to a piece of it, outside of it and not above
    it. It may have one piece more or less than the subtree. Exchanges are drawn at random, whereas
    `lr-sib` enumerates all of them. A sample needs two different negatives.

    Subtrees of a segment are taken in random order. Segments are sampled in order until there are
    ``max_samples``. Truncated segments are sampled as they are in the batch.

    Attributes:
        way: Whose rules.
        negatives: Negatives of a sample, at most (K).
        max_samples: Samples of an example, at most.
        min_size: Fewest pieces of a subtree.
        max_size: Most pieces of a subtree.
        exchanges: `lr_sib`: most parts that a negative replaces: 3 as released, where Gessler and
            Schneider (2023) describe 1, and 3 negatives.
    """

    way: Way = "synclm"
    negatives: Count = 10
    max_samples: Count = 32
    min_size: Annotated[int, Bounds(2)] = 2
    max_size: int = 10
    exchanges: Annotated[int, Bounds(1, 3)] = 3

    def __post_init__(self) -> None:
        check_fields("", self)
        check_range("max_size", self.max_size, self.min_size)
        if self.way == "lr_sib" and self.negatives < _FEWEST_NEGATIVES:
            raise SpecError(f"negatives is {self.negatives}; lr_sib needs {_FEWEST_NEGATIVES}")

    def sample(
        self, batch: Mapping[str, NDArray[Any]], keys: Sequence[str], seed: int, epoch: int
    ) -> Samples:
        """S samples, those of one example together. Pieces are columns of the batch, int32.

        A tree is its columns in ascending order, the root's included, with -1 after the last one;
        the width W is ``max_size + 1``.

        * ``tree_offsets``: int64 (B + 1,), first sample of each example, and the end
        * ``tree_root``: (S,)
        * ``tree_positive``: (S, W)
        * ``tree_negatives``: (S, K, W), all -1 after the last one
        """
        count, width = len(keys) * self.max_samples, self.max_size + 1
        rows = _Rows(
            np.empty(count, np.int32),
            np.full((count, width), PADDING, np.int32),
            np.full((count, self.negatives, width), PADDING, np.int32),
        )
        seeds = example_seeds(keys, seed, epoch, f"trees of {self.way}")
        return draw_samples("tree", texts_of(batch), seeds, self.max_samples, rows, self._draw)

    def _draw(
        self, state: State, column: IntArray, parent: IntArray, row: int, end: int, rows: _Rows
    ) -> int:
        given = (state, column, parent, row, end, rows, self.min_size, self.max_size)
        if self.way == "synclm":
            return int(_draw_synclm(*given))
        return int(_draw_lr_sib(*given, self.exchanges))


class _Rows(NamedTuple):
    """Arrays of S samples, filled from the first row. (S,), (S, W) and (S, K, W)."""

    root: IntArray
    positive: IntArray
    negatives: IntArray


@njit(cache=True, nogil=True)
def _draw_synclm(
    state: State,
    column: IntArray,
    parent: IntArray,
    row: int,
    end: int,
    rows: _Rows,
    min_size: int,
    max_size: int,
) -> int:
    shape = measure(parent)
    count = len(parent)
    starts = np.empty(3 * (max_size + 1), np.int32)
    lengths = np.empty_like(starts)
    for head in shuffled(state, count):
        length = shape.last[head] - shape.first[head] + 1
        if parent[head] < 0 or shape.size[head] < 2 or not min_size <= length <= max_size:
            continue
        if row == end:
            return row
        size = _windows(head, shape.first[head], length, count, starts, lengths)
        if size == 0:
            continue
        chosen = np.arange(size).astype(np.int32)
        rows.root[row] = column[head]
        _copy(column, shape.first[head], length, rows.positive[row])
        for at in range(choose(state, chosen, size, rows.negatives.shape[1])):
            window = chosen[at]
            _copy(column, starts[window], lengths[window], rows.negatives[row, at])
        row += 1
    return row


@njit(cache=True, nogil=True)
def _windows(
    head: Index, first: Index, length: int, count: int, starts: IntArray, lengths: IntArray
) -> int:
    size = 0
    for wide in range(length - 1 if length > 3 else length, length + 2):
        for start in range(max(head - wide + 1, 0), min(head, count - wide) + 1):
            if start != first:
                starts[size], lengths[size] = start, wide
                size += 1
    return size


@njit(cache=True, nogil=True)
def _copy(column: IntArray, start: Index, length: int, tree: IntArray) -> None:
    for at in range(length):
        tree[at] = column[start + at]


@njit(cache=True, nogil=True)
def _draw_lr_sib(
    state: State,
    column: IntArray,
    parent: IntArray,
    row: int,
    end: int,
    rows: _Rows,
    min_size: int,
    max_size: int,
    exchanges: int,
) -> int:
    shape = measure(parent)
    tour = tour_of(parent, shape)
    count = len(parent)
    members = np.empty(max_size, np.int32)
    for top in shuffled(state, count):
        if row == end:
            return row
        if not min_size <= shape.size[top] <= max_size:
            continue
        found = _exchange(state, column, tour, top, rows.negatives[row], exchanges)
        if found < _FEWEST_NEGATIVES:
            rows.negatives[row] = PADDING
            continue
        rows.root[row] = column[top]
        size = 0
        for node in tour.nodes[tour.enter[top] : tour.leave[top]]:
            size = _insert(members, size, node)
        for at in range(size):
            rows.positive[row, at] = column[members[at]]
        row += 1
    return row


@njit(cache=True, nogil=True)
def _exchange(
    state: State, column: IntArray, tour: Tour, top: Index, negatives: IntArray, exchanges: int
) -> int:
    parts = tour.nodes[tour.enter[top] + 1 : tour.leave[top]].copy()
    neighbours = _neighbours(tour, top)
    most = min(exchanges, len(parts), len(neighbours))
    members = np.empty(negatives.shape[1], np.int32)
    found = 0
    for _ in range(_TRIES * len(negatives) if most > 0 else 0):
        if found == len(negatives):
            break
        swaps = 1 + below(state, most)
        choose(state, parts, len(parts), swaps)
        choose(state, neighbours, len(neighbours), swaps)
        if not _are_exchangeable(tour, parts, neighbours, swaps):
            continue
        size = _exchanged(tour, top, parts, neighbours, swaps, members)
        for at in range(len(members)):
            negatives[found, at] = column[members[at]] if at < size else PADDING
        found += _is_new(negatives, found)
    if found < len(negatives):
        negatives[found] = PADDING  # a repeated one may stand here
    return found


@njit(cache=True, nogil=True)
def _is_new(trees: IntArray, last: int) -> bool:
    for earlier in range(last):
        at = 0
        while at < trees.shape[1] and trees[earlier, at] == trees[last, at]:
            at += 1
        if at == trees.shape[1]:
            return False
    return True


@njit(cache=True, nogil=True)
def _neighbours(tour: Tour, top: Index) -> IntArray:
    """Pieces adjacent to one of the subtree, outside of it and not above it, ascending."""
    last = len(tour.nodes) - 1
    found = np.empty(2 * (tour.leave[top] - tour.enter[top]), np.int32)
    size = 0
    for node in tour.nodes[tour.enter[top] : tour.leave[top]]:
        for other in (max(node - 1, 0), min(node + 1, last)):
            if not holds(tour, top, other) and not holds(tour, other, top):
                size = _insert(found, size, other)
    return found[:size]


@njit(cache=True, nogil=True)
def _are_exchangeable(tour: Tour, parts: IntArray, neighbours: IntArray, swaps: int) -> bool:
    """True if the first parts and neighbours are not nested and similar in size."""
    slack = 0
    for at in range(swaps):
        slack += tour.leave[neighbours[at]] - tour.enter[neighbours[at]]
        slack -= tour.leave[parts[at]] - tour.enter[parts[at]]
        for other in range(swaps):
            if at != other and (
                holds(tour, parts[at], parts[other])
                or holds(tour, neighbours[at], neighbours[other])
            ):
                return False
    return abs(slack) <= _SLACK


@njit(cache=True, nogil=True)
def _exchanged(
    tour: Tour, top: Index, parts: IntArray, neighbours: IntArray, swaps: int, members: IntArray
) -> int:
    size = 0
    for node in tour.nodes[tour.enter[top] : tour.leave[top]]:
        removed = False
        for at in range(swaps):
            removed = removed or holds(tour, parts[at], node)
        if not removed:
            size = _insert(members, size, node)
    for at in range(swaps):
        for node in tour.nodes[tour.enter[neighbours[at]] : tour.leave[neighbours[at]]]:
            size = _insert(members, size, node)
    return size


@njit(cache=True, nogil=True)
def _insert(nodes: IntArray, size: int, node: Index) -> int:
    """Insert a node among the first ``size``, ascending; faster for few than numba's own sort."""
    at = size
    while at > 0 and nodes[at - 1] > node:
        at -= 1
    if at > 0 and nodes[at - 1] == node:
        return size
    for later in range(size, at, -1):
        nodes[later] = nodes[later - 1]
    nodes[at] = node
    return size + 1
