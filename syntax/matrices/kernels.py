"""The compiled passes over parent vectors.

Trees lie end to end in flat int32 arrays, tree ``t`` from ``offsets[t]`` to ``offsets[t + 1]``. All
passes are linear in the nodes, except `fill_matrices`, which is linear in the cells. Each argument
has one dtype, so that each pass is compiled once (`fill_matrices` for uint8 and for uint16).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from syntax.compiled import njit

IntArray = NDArray[np.int32]


class OrderedTrees(NamedTuple):
    """N nodes of trees that are free of cycles. *Shape:* (N,) each, int32.

    Attributes:
        parents: Positions in the flat array; -1 and -2 stay as they are.
        place: Position of each node within its tree.
        order: The nodes of each tree with parents before children.
    """

    parents: IntArray
    place: IntArray
    order: IntArray
    depth: IntArray
    root: IntArray


@njit(cache=True, nogil=True)
def order_trees(heads: IntArray, offsets: NDArray[np.int64], result: OrderedTrees) -> int:
    """Check trees, and order their nodes so that parents come before children.

    From each node the pass climbs to the first node that has a place, stacks the path at the free
    end of ``order``, and then places the path from its top. Returns a node whose head lies outside
    of its tree or from which no root can be reached, or -1.
    """
    parents, place, order, depth, root = result
    for tree in range(len(offsets) - 1):
        placed, end = offsets[tree], offsets[tree + 1]
        misplaced = _link(heads, placed, end, parents, place)
        if misplaced >= 0:
            return misplaced
        depth[placed:end] = -1
        for node in range(placed, end):
            if depth[node] >= 0:
                continue
            at, above, top = node, parents[node], end
            while above >= 0 and depth[above] < 0:
                if top == placed:  # the path has more nodes than are left, so it has a cycle
                    return node
                top -= 1
                order[top] = at
                at, above = above, parents[above]
            start = root[above] if above >= 0 else at
            level = depth[above] + 1 if above >= 0 else 0
            while True:
                depth[at], root[at], order[placed] = level, start, at
                placed += 1
                if top == end:
                    break
                at = order[top]
                top += 1
                level += 1
    return -1


@njit(cache=True, nogil=True)
def link_trees(heads: IntArray, offsets: NDArray[np.int64], parents: IntArray) -> int:
    """Write positions in the flat array; the first node with a head outside of its tree, or -1."""
    place = np.empty_like(parents)
    for tree in range(len(offsets) - 1):
        misplaced = _link(heads, offsets[tree], offsets[tree + 1], parents, place)
        if misplaced >= 0:
            return misplaced
    return -1


@njit(cache=True, nogil=True)
def _link(heads: IntArray, first: int, end: int, parents: IntArray, place: IntArray) -> int:
    for node in range(first, end):
        head = heads[node]
        if head < -2 or head >= end - first:
            return node
        parents[node] = head + first if head >= 0 else head
        place[node] = node - first
    return -1


@njit(cache=True, nogil=True)
def longest_path(parents: IntArray, order: IntArray) -> int:
    """Edges on the longest path between two nodes of any tree."""
    height = np.zeros(len(parents), np.int32)
    longest = 0
    for index in range(len(order) - 1, -1, -1):
        node = order[index]
        above = parents[node]
        if above >= 0:
            longest = max(longest, height[above] + height[node] + 1)
            height[above] = max(height[above], height[node] + 1)
    return longest


class Trees(NamedTuple):
    """T trees of N nodes in all. *Shape:* (N,), ``offsets`` (T + 1,).

    Attributes:
        source: The node whose row and column a node shows: itself or its parent.
        column: Column of each node in its tree's matrices; -1 for a deleted node.
    """

    offsets: NDArray[np.int64]
    parents: IntArray
    order: IntArray
    root: IntArray
    source: IntArray
    column: IntArray


class Scratch(NamedTuple):
    """Memory for one tree at a time, small enough to stay in the processor's cache.

    ``rows`` (slots, stride) are distances; ``below`` is 1 in the columns of a node and of its
    descendants. ``stride`` is the width of the batch rounded up to whole 64-bit words.
    """

    rows: NDArray[np.uint8]
    below: NDArray[np.uint8]


class Slots(NamedTuple):
    """Rows of `Scratch` that one tree's nodes take.

    The slot of a node with a column is that column. Deleted nodes with a descendant that has a
    column take the slots after the last column; other deleted nodes take none. Slots are unsigned
    where rows are looked up, so that the passes need no check for negative indices.

    Attributes:
        own, above, top: Slots of each node that has one, of its parent (its own at a root) and of
            its root; parents come before children. *Shape:* (largest,).
        owner: Slot of the node whose row each column shows. *Shape:* (stride,).
    """

    slot: IntArray
    own: NDArray[np.uint32]
    above: NDArray[np.uint32]
    top: NDArray[np.uint32]
    owner: NDArray[np.uint32]
    depth: NDArray[np.uint8]


@njit(cache=True, nogil=True)
def fill_matrices(
    trees: Trees,
    levels: IntArray,
    scratch: Scratch,
    depth: NDArray[np.uint8],
    distance: NDArray[np.uint8],
    ancestor: NDArray[np.uint8],
) -> None:
    """Fill ``depth`` (T, width) and, unless they are empty, the matrices (T, width, width).

    Padding is 0, and in ``distance`` the maximum of the dtype, as without a path. ``levels`` (N,)
    are the depths of the nodes.
    """
    stride, width = scratch.rows.shape[1], depth.shape[1]
    largest = np.diff(trees.offsets).max() if len(depth) else 0
    own, above, top = np.empty((3, largest), np.uint32)
    slot, owner = np.empty(largest, np.int32), np.empty(stride, np.uint32)
    slots = Slots(slot, own, above, top, owner, np.empty(stride, depth.dtype))
    for tree in range(len(depth)):
        length, used = _assign_slots(trees, tree, levels, slots)
        count = _order_slots(trees, tree, slots)
        depth[tree] = slots.depth[:width]
        if not (len(distance) or len(ancestor)):
            continue
        in_place = len(distance) > 0 and stride == width and _is_identity(slots, length, used)
        rows = distance[tree] if in_place else scratch.rows
        _fill_below(slots, count, length, scratch.below[:used])
        _fill_rows(slots, count, scratch.below, rows)
        if len(distance):
            if not in_place:
                _copy_rows(slots, length, rows, distance[tree])
            distance[tree, length:] = np.iinfo(distance.dtype).max
        if len(ancestor):
            _find_ancestors(slots, length, rows, ancestor[tree])
            ancestor[tree, length:] = 0


@njit(cache=True, nogil=True)
def _assign_slots(trees: Trees, tree: int, levels: IntArray, slots: Slots) -> tuple[int, int]:
    """Fill ``slot``, ``owner`` and ``depth``; the number of columns, and of slots in use."""
    offsets, parents, order, _, source, column = trees
    first, end = offsets[tree], offsets[tree + 1]
    length = 0
    for node in range(first, end):
        slots.slot[node - first] = column[node]
        length += column[node] >= 0
    used = length
    if length < end - first:
        for index in range(end - 1, first - 1, -1):
            node, above = order[index], parents[order[index]]
            if above >= 0 and slots.slot[node - first] >= 0 and slots.slot[above - first] < 0:
                slots.slot[above - first] = used
                used += 1
    slots.depth[:] = 0
    for node in range(first, end):
        at = column[node]
        if at >= 0:
            slots.owner[at] = slots.slot[source[node] - first]
            slots.depth[at] = levels[source[node]]
    return length, used


@njit(cache=True, nogil=True)
def _order_slots(trees: Trees, tree: int, slots: Slots) -> int:
    """Fill ``own``, ``above`` and ``top``; the number of nodes with a slot."""
    offsets, parents, order, root, _, _ = trees
    slot, own, above, top, _, _ = slots
    first = offsets[tree]
    count = 0
    for index in range(first, offsets[tree + 1]):
        node = order[index]
        here, parent = slot[node - first], parents[node]
        if here >= 0:
            own[count] = here
            above[count] = slot[parent - first] if parent >= 0 else here
            top[count] = slot[root[node] - first]
            count += 1
    return count


@njit(cache=True, nogil=True)
def _is_identity(slots: Slots, length: int, used: int) -> bool:
    identity = used == length
    for column in range(length):
        identity &= slots.owner[column] == column
    return identity


@njit(cache=True, nogil=True)
def _fill_below(slots: Slots, count: int, length: int, below: NDArray[np.uint8]) -> None:
    words = below.view(np.uint64)
    below[:] = 0
    for column in range(length):
        below[slots.owner[column], column] = 1
    for index in range(count - 1, -1, -1):
        to, row = words[slots.above[index]], words[slots.own[index]]
        for word in range(len(to)):
            to[word] |= row[word]


@njit(cache=True, nogil=True)
def _fill_rows(slots: Slots, count: int, below: NDArray[np.uint8], rows: NDArray[np.uint8]) -> None:
    """Write rows of distances, from each root downwards.

    A child is one edge nearer than its parent to the child's descendants, and one edge farther
    from the rest of the tree: ``distance[child] = distance[parent] + tree - 2 * below[child]``,
    where ``tree`` is the root's row of descendants. Nodes of other trees stay unreachable.

    Rows are added as 64-bit words, eight or four entries at once. That is exact: the result of
    each entry lies between 0 and the maximum, so that nothing is carried to the next entry.
    """
    words, below_words = rows.view(np.uint64), below.view(np.uint64)
    unreachable = np.iinfo(rows.dtype).max
    for index in range(count):
        here, there = slots.own[index], slots.above[index]
        if here == there:
            row, inside = rows[here], below[here]
            for column in range(len(row)):
                row[column] = slots.depth[column] if inside[column] else unreachable
            continue
        to, row_above = words[here], words[there]
        nearer, tree = below_words[here], below_words[slots.top[index]]
        for word in range(len(to)):
            to[word] = row_above[word] + (tree[word] - nearer[word]) - nearer[word]


@njit(cache=True, nogil=True)
def _copy_rows(
    slots: Slots, length: int, rows: NDArray[np.uint8], shown: NDArray[np.uint8]
) -> None:
    for column in range(length):
        to, row = shown[column], rows[slots.owner[column]]
        for at in range(len(to)):
            to[at] = row[at]


@njit(cache=True, nogil=True)
def _find_ancestors(
    slots: Slots, length: int, rows: NDArray[np.uint8], ancestor: NDArray[np.uint8]
) -> None:
    """Write 1 where ``distance[i, j] + depth[j] == depth[i]``: the path from i to j only climbs."""
    kind, depth = rows.dtype.type, slots.depth
    for column in range(length):
        to, row, own = ancestor[column], rows[slots.owner[column]], depth[column]
        for at in range(len(to)):
            to[at] = (row[at] <= own) & (kind(row[at] + depth[at]) == own)
