"""Tree samples as `lr-sib` makes them: parts of a subtree exchanged for neighbouring subtrees."""

from __future__ import annotations

from typing import Final

import numpy as np

from syntax.compiled import njit
from syntax.contrast.draws import Index, IntArray, State, below, choose
from syntax.contrast.rows import TreeRows
from syntax.contrast.texts import Tour, holds, measure, tour_of

FEWEST: Final = 2
"""Negatives that a sample needs."""

_PARTS: Final = 3
"""Parts that are exchanged, at most."""

_TRIES: Final = 8
"""Exchanges that are tried for each negative wanted."""

_SLACK: Final = 1
"""Pieces by which a negative may be larger or smaller."""


@njit(cache=True, nogil=True)
def draw(
    state: State,
    column: IntArray,
    parent: IntArray,
    row: int,
    end: int,
    rows: TreeRows,
    min_size: int,
    max_size: int,
) -> int:
    """Samples of one segment; the row after the last one filled."""
    shape = measure(parent)
    tour = tour_of(parent, shape)
    count = len(parent)
    tops = np.arange(count).astype(np.int32)
    choose(state, tops, count, count)
    for top in tops:
        if row == end:
            return row
        if not min_size <= shape.size[top] <= max_size:
            continue
        if _exchange(state, column, tour, top, rows.negatives[row]) < FEWEST:
            rows.negatives[row] = -1
            continue
        rows.root[row] = column[top]
        members = np.sort(tour.nodes[tour.enter[top] : tour.leave[top]])
        for at in range(len(members)):
            rows.positive[row, at] = column[members[at]]
        row += 1
    return row


@njit(cache=True, nogil=True)
def _exchange(state: State, column: IntArray, tour: Tour, top: Index, negatives: IntArray) -> int:
    """Write different exchanges of one subtree; how many were found."""
    parts = tour.nodes[tour.enter[top] + 1 : tour.leave[top]].copy()
    neighbours = _neighbours(tour, top)
    most = min(_PARTS, len(parts), len(neighbours))
    found = 0
    for _ in range(_TRIES * len(negatives) if most > 0 else 0):
        if found == len(negatives):
            break
        swaps = 1 + below(state, most)
        choose(state, parts, len(parts), swaps)
        choose(state, neighbours, len(neighbours), swaps)
        if not _fit(tour, parts, neighbours, swaps):
            continue
        _write(column, tour, top, parts, neighbours, swaps, negatives[found])
        if _is_new(negatives, found):
            found += 1
        else:
            negatives[found] = -1
    return found


@njit(cache=True, nogil=True)
def _neighbours(tour: Tour, top: Index) -> IntArray:
    """Pieces next to one of the subtree, outside of it and not above it, in order."""
    last = len(tour.nodes) - 1
    found = np.empty(2 * (tour.leave[top] - tour.enter[top]), np.int32)
    size = 0
    for node in tour.nodes[tour.enter[top] : tour.leave[top]]:
        for other in (max(node - 1, 0), min(node + 1, last)):
            if not holds(tour, top, other) and not holds(tour, other, top):
                found[size] = other
                size += 1
    return np.unique(found[:size])


@njit(cache=True, nogil=True)
def _fit(tour: Tour, parts: IntArray, neighbours: IntArray, swaps: int) -> bool:
    """Whether the first parts and neighbours are not nested, and about as large."""
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
def _write(
    column: IntArray,
    tour: Tour,
    top: Index,
    parts: IntArray,
    neighbours: IntArray,
    swaps: int,
    tree: IntArray,
) -> None:
    """Write the subtree without the parts and with the neighbours, in ascending order."""
    members = np.empty(len(tree), np.int32)
    size = 0
    for node in tour.nodes[tour.enter[top] : tour.leave[top]]:
        gone = False
        for at in range(swaps):
            gone = gone or holds(tour, parts[at], node)
        if not gone:
            members[size] = node
            size += 1
    for at in range(swaps):
        for node in tour.nodes[tour.enter[neighbours[at]] : tour.leave[neighbours[at]]]:
            members[size] = node
            size += 1
    members = np.sort(members[:size])
    for at in range(size):
        tree[at] = column[members[at]]


@njit(cache=True, nogil=True)
def _is_new(negatives: IntArray, found: int) -> bool:
    new = True
    for earlier in range(found):
        new = new and not (negatives[earlier] == negatives[found]).all()
    return new
