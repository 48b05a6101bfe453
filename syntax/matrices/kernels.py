"""The compiled passes over parent vectors.

Trees lie end to end in flat int32 arrays: tree ``t`` owns the nodes ``offsets[t]`` to
``offsets[t + 1]``. All passes are linear in the nodes, but for `fill_matrices`, which is linear
in the cells.

Arguments have one dtype each, so that each pass is compiled once (`fill_matrices` twice).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from syntax.compiled import njit

IntArray = NDArray[np.int32]


class Order(NamedTuple):
    """What `order_trees` finds out about N nodes. *Shape:* (N,) each.

    Attributes:
        parents: Positions in the flat array; negative ones as they came.
        place: Position of each node within its tree.
        order: The nodes of each tree with parents before children.
        depth: Edges from each node's root.
        root: Each node's root.
    """

    parents: IntArray
    place: IntArray
    order: IntArray
    depth: IntArray
    root: IntArray


@njit(cache=True, nogil=True)
def order_trees(heads: IntArray, offsets: NDArray[np.int64], result: Order) -> int:
    """Check trees, and order their nodes so that parents come before children.

    From each node we climb to the first one that is already placed, stacking the path at the free
    end of ``order``, and then place the path from its top.

    Args:
        heads: Parents that count within each tree, -1 or -2 for none. *Shape:* (N,).
        offsets: First node of each tree, and the end. *Shape:* (T + 1,).
        result: Written.

    Returns:
        A node whose head lies outside of its tree or from which no root can be reached, or -1.
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
                if top == placed:  # the path has more nodes than are left: it goes in a circle
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
    """Turn heads that count within each tree into positions in the flat array, as `Order` has them.

    Returns:
        The first node whose head lies outside of its tree, or -1.
    """
    place = np.empty_like(parents)
    for tree in range(len(offsets) - 1):
        misplaced = _link(heads, offsets[tree], offsets[tree + 1], parents, place)
        if misplaced >= 0:
            return misplaced
    return -1


@njit(cache=True, nogil=True)
def _link(heads: IntArray, first: int, end: int, parents: IntArray, place: IntArray) -> int:
    """Turn one tree's heads into positions in the flat array; the first that cannot, or -1."""
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
    """T trees of N nodes in all.

    Attributes:
        offsets: First node of each tree, and the end. *Shape:* (T + 1,), int64.
        parents, order, root: As `order_trees` takes and gives them. *Shape:* (N,).
        source: The node whose row and column a node shows: itself or its parent. *Shape:* (N,).
        column: Column of each node in its tree's matrices; -1 where it was deleted. *Shape:* (N,).
    """

    offsets: NDArray[np.int64]
    parents: IntArray
    order: IntArray
    root: IntArray
    source: IntArray
    column: IntArray


class Room(NamedTuple):
    """Memory for one tree at a time, small enough to stay in the cache.

    Attributes:
        rows: A row of distances for each slot. *Shape:* (slots, stride), uint8 or uint16; ``slots``
            is the size of the largest tree, ``stride`` the width of the batch rounded up so that
            rows are whole 64-bit words.
        below: A 0/1 row for each slot: the columns of the node and of all below it. Likewise.
    """

    rows: NDArray[np.uint8]
    below: NDArray[np.uint8]


class Steps(NamedTuple):
    """One tree's nodes as slots, parents before children.

    A node that is shown has its column as slot. Deleted nodes that shown ones descend from have
    those after the last column; others have none, and no step. Slots are unsigned where rows are
    looked up, which spares the passes a check for negative indices.

    Attributes:
        slot: Slot of each node, -1 for none. *Shape:* (largest,), int32.
        own, above, top: Slots of each step's node, of its parent (its own at a root) and of its
            root. *Shape:* (largest,).
        owner: Slot of the node that each column stands for. *Shape:* (stride,).
        depth: Depth of each column, 0 in padding. *Shape:* (stride,), uint8 or uint16.
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
    room: Room,
    depth: NDArray[np.uint8],
    distance: NDArray[np.uint8],
    ancestor: NDArray[np.uint8],
) -> None:
    """Fill the padded matrices of T trees.

    Args:
        trees: The trees.
        levels: Depth of each node. *Shape:* (N,).
        room: Memory to work in; no rows are needed for the depth alone.
        depth: Written; 0 in padding. *Shape:* (T, width), uint8 or uint16.
        distance: Written, the dtype's maximum where no path is and in padding; left alone if it
            is empty. *Shape:* (T or 0, width, width), the dtype of ``depth``.
        ancestor: Written as 0/1, 0 in padding; left alone if it is empty. Likewise, uint8.
    """
    stride, width = room.rows.shape[1], depth.shape[1]
    largest = np.diff(trees.offsets).max() if len(depth) else 0
    own, above, top = np.empty((3, largest), np.uint32)
    slot, owner = np.empty(largest, np.int32), np.empty(stride, np.uint32)
    steps = Steps(slot, own, above, top, owner, np.empty(stride, depth.dtype))
    for tree in range(len(depth)):
        length, slots = _take_slots(trees, tree, levels, steps)
        count = _take_steps(trees, tree, steps)
        depth[tree] = steps.depth[:width]
        if not (len(distance) or len(ancestor)):
            continue
        in_place = len(distance) > 0 and stride == width and _is_plain(steps, length, slots)
        rows = distance[tree] if in_place else room.rows
        _fill_below(steps, count, length, room.below[:slots])
        _fill_rows(steps, count, room.below, rows)
        if len(distance):
            if not in_place:
                _show_rows(steps, length, rows, distance[tree])
            distance[tree, length:] = np.iinfo(distance.dtype).max
        if len(ancestor):
            _find_ancestors(steps, length, rows, ancestor[tree])
            ancestor[tree, length:] = 0


@njit(cache=True, nogil=True)
def _take_slots(trees: Trees, tree: int, levels: IntArray, steps: Steps) -> tuple[int, int]:
    """Fill ``slot``, ``owner`` and ``depth``; the number of columns, and of slots."""
    offsets, parents, order, _, source, column = trees
    first, end = offsets[tree], offsets[tree + 1]
    length = 0
    for node in range(first, end):
        steps.slot[node - first] = column[node]
        length += column[node] >= 0
    slots = length
    if length < end - first:
        for index in range(end - 1, first - 1, -1):
            node, above = order[index], parents[order[index]]
            if above >= 0 and steps.slot[node - first] >= 0 and steps.slot[above - first] < 0:
                steps.slot[above - first] = slots
                slots += 1
    steps.depth[:] = 0
    for node in range(first, end):
        at = column[node]
        if at >= 0:
            steps.owner[at] = steps.slot[source[node] - first]
            steps.depth[at] = levels[source[node]]
    return length, slots


@njit(cache=True, nogil=True)
def _take_steps(trees: Trees, tree: int, steps: Steps) -> int:
    """Fill ``own``, ``above`` and ``top``; the number of steps."""
    offsets, parents, order, root, _, _ = trees
    slot, own, above, top, _, _ = steps
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
def _is_plain(steps: Steps, length: int, slots: int) -> bool:
    """Whether every slot is a column, and every column shows its own row."""
    plain = slots == length
    for column in range(length):
        plain &= steps.owner[column] == column
    return plain


@njit(cache=True, nogil=True)
def _fill_below(steps: Steps, count: int, length: int, below: NDArray[np.uint8]) -> None:
    """Lay the 0/1 rows of what is below, from the leaves upwards."""
    words = below.view(np.uint64)
    below[:] = 0
    for column in range(length):
        below[steps.owner[column], column] = 1
    for step in range(count - 1, -1, -1):
        to, row = words[steps.above[step]], words[steps.own[step]]
        for word in range(len(to)):
            to[word] |= row[word]


@njit(cache=True, nogil=True)
def _fill_rows(steps: Steps, count: int, below: NDArray[np.uint8], rows: NDArray[np.uint8]) -> None:
    """Lay rows of distances, from each root downwards.

    A step from a node to its child comes one edge nearer to all that is below the child, and goes
    one farther from the rest of the tree:
    ``distance[child] = distance[node] + tree - 2 * below[child]``, where ``tree`` is what is below
    the root. Nodes of other trees stay unreachable: the dtype's maximum.

    Rows are added as 64-bit words, eight or four entries at once. That is exact: every entry of
    every row ends between 0 and the maximum, so nothing is carried from one to the next.
    """
    words, below_words = rows.view(np.uint64), below.view(np.uint64)
    unreachable = np.iinfo(rows.dtype).max
    for step in range(count):
        here, there = steps.own[step], steps.above[step]
        if here == there:
            row, inside = rows[here], below[here]
            for column in range(len(row)):
                row[column] = steps.depth[column] if inside[column] else unreachable
            continue
        to, row_above = words[here], words[there]
        nearer, tree = below_words[here], below_words[steps.top[step]]
        for word in range(len(to)):
            to[word] = row_above[word] + (tree[word] - nearer[word]) - nearer[word]


@njit(cache=True, nogil=True)
def _show_rows(
    steps: Steps, length: int, rows: NDArray[np.uint8], shown: NDArray[np.uint8]
) -> None:
    """Copy to each column's row the one of the node that it stands for."""
    for column in range(length):
        to, row = shown[column], rows[steps.owner[column]]
        for at in range(len(to)):
            to[at] = row[at]


@njit(cache=True, nogil=True)
def _find_ancestors(
    steps: Steps, length: int, rows: NDArray[np.uint8], ancestor: NDArray[np.uint8]
) -> None:
    """Compare distances with depths: to an ancestor, the path only climbs.

    ``distance[i, j] + depth[j] == depth[i]``; the sum may wrap around, but not if the distance is
    at most the depth, as it must be.
    """
    kind, depth = rows.dtype.type, steps.depth
    for column in range(length):
        to, row, own = ancestor[column], rows[steps.owner[column]], depth[column]
        for at in range(len(to)):
            to[at] = (row[at] <= own) & (kind(row[at] + depth[at]) == own)
