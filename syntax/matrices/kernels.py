"""The compiled passes over parent vectors.

Trees lie end to end in flat int32 arrays: tree ``t`` owns the nodes ``offsets[t]`` to
``offsets[t + 1]``. All passes are linear in the nodes, but for `fill_ancestor` and
`fill_distance`, which are linear in the cells.

Arguments have one dtype each, so that each pass is compiled once (`fill_distance` twice).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

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


class Plan(NamedTuple):
    """How to lay T trees into matrices that are ``width`` wide, row by row.

    Each step fills one row from a row before it. A row has two numbers: its ``slot`` within the
    tree, below ``width`` if it is shown and from ``width`` on if it belongs to a deleted node that
    shown ones descend from; and its ``row`` in the array that holds all matrices, (T * width +
    extra, width), whose extra rows serve the deleted nodes of every tree in turn. They are
    unsigned, which spares the passes a check for negative indices.

    Attributes:
        offsets: First step of each tree, and the end. *Shape:* (T + 1,), int64.
        slot: Slot of each step. *Shape:* (N,) here and below, of which one per step is used.
        slot_above: Slot of the parent; the step's own at a root.
        slot_top: Slot of the root; the step's own for a node that shows its parent's row.
        row, row_above: Rows of ``slot`` and ``slot_above``.
        length: Columns of each tree; the rest is padding. *Shape:* (T,), int32.
        owner: Slot of the node that each column stands for. *Shape:* (T, width).
        depth: Depth of each column, 0 in padding. *Shape:* (T, width), int32.
    """

    offsets: NDArray[np.int64]
    slot: NDArray[np.uint32]
    slot_above: NDArray[np.uint32]
    slot_top: NDArray[np.uint32]
    row: NDArray[np.uint32]
    row_above: NDArray[np.uint32]
    length: IntArray
    owner: NDArray[np.uint32]
    depth: IntArray


@njit(cache=True, nogil=True)
def make_plan(trees: Trees, depth: IntArray, plan: Plan) -> int:
    """Fill ``plan``; returns how many rows of deleted nodes the neediest tree has."""
    offsets, parents, order, root, source, column = trees
    starts, slot, slot_above, slot_top, row, row_above, _, owner, _ = plan
    width = owner.shape[1]
    slots = column.copy()
    most = 0
    step = 0
    for tree in range(len(offsets) - 1):
        most = max(most, _add_slots(trees, tree, width, slots))
        starts[tree] = step
        shown, extra = tree * width, (len(offsets) - 2) * width
        for index in range(offsets[tree], offsets[tree + 1]):
            node = order[index]
            own, parent = slots[node], parents[node]
            if own >= 0:
                above = slots[parent] if parent >= 0 else own
                slot[step] = own
                slot_above[step] = above
                slot_top[step] = slots[root[node]] if source[node] == node else own
                row[step] = own + (shown if own < width else extra)
                row_above[step] = above + (shown if above < width else extra)
                step += 1
        _own_columns(trees, tree, slots, depth, plan)
    starts[-1] = step
    return most


@njit(cache=True, nogil=True)
def _add_slots(trees: Trees, tree: int, width: int, slots: IntArray) -> int:
    """Give slots from ``width`` on to the deleted nodes that shown ones descend from."""
    offsets, parents, order, _, _, _ = trees
    first, end = offsets[tree], offsets[tree + 1]
    added = 0
    if (slots[first:end] >= 0).all():
        return added
    for index in range(end - 1, first - 1, -1):
        node = order[index]
        above = parents[node]
        if above >= 0 and slots[node] >= 0 and slots[above] < 0:
            slots[above] = width + added
            added += 1
    return added


@njit(cache=True, nogil=True)
def _own_columns(trees: Trees, tree: int, slots: IntArray, depth: IntArray, plan: Plan) -> None:
    """Fill one tree's ``plan.length``, ``plan.owner`` and ``plan.depth``."""
    offsets, _, _, _, source, column = trees
    _, _, _, _, _, _, lengths, owner, shown_depth = plan
    shown_depth[tree] = 0
    length = 0
    for node in range(offsets[tree], offsets[tree + 1]):
        at = column[node]
        if at >= 0:
            owner[tree, at] = slots[source[node]]
            shown_depth[tree, at] = depth[source[node]]
            length += 1
    lengths[tree] = length


@njit(cache=True, nogil=True)
def fill_ancestor(plan: Plan, ancestor: NDArray[np.uint8]) -> None:
    """Lay 0/1 ancestor rows into ``ancestor``: the parent's row, and the node's own columns.

    Args:
        plan: What `make_plan` made for T trees.
        ancestor: *Shape:* (T * width + extra, width), ``width`` a multiple of 8, so that rows are
            joined as 64-bit words.
    """
    offsets, _, _, _, row, row_above, length, owner, _ = plan
    words = ancestor.view(np.uint64)
    count, width = owner.shape
    for tree in range(count):
        words[tree * width : (tree + 1) * width] = 0
        words[count * width :] = 0
        for column in range(length[tree]):
            own = np.intp(owner[tree, column])
            place = own + width * (tree if own < width else count - 1)
            ancestor[place, column] = 1
        for step in range(offsets[tree], offsets[tree + 1]):
            here, there = row[step], row_above[step]
            for word in range(words.shape[1]):
                words[here, word] |= words[there, word]


@njit(cache=True, nogil=True)
def fill_distance(plan: Plan, distance: NDArray[np.uint8]) -> None:
    """Lay distance rows into ``distance``, from each root downwards.

    A step from a node to its child comes one edge nearer to the nodes of the child's subtree and
    goes one farther from the rest of the tree:
    ``distance[child] = distance[node] + tree - 2 * subtree``, both 0/1 rows. Nodes of other trees
    stay unreachable: the dtype's maximum.

    Rows are added as 64-bit words, eight or four entries at once. That is exact: every entry of
    every row ends between 0 and the maximum, so nothing is carried from one to the next.

    Args:
        plan: What `make_plan` made for T trees.
        distance: uint8 or uint16. *Shape:* (T * width + extra, width), ``width`` a multiple of 8.
    """
    offsets, slot, _, slot_top, row, row_above, length, owner, depth = plan
    words = distance.view(np.uint64)
    unreachable = np.iinfo(distance.dtype).max
    count, width = owner.shape
    subtree = np.empty((len(distance) - (count - 1) * width, width), distance.dtype)
    subtree_words = subtree.view(np.uint64)
    for tree in range(count):
        distance[tree * width + length[tree] : (tree + 1) * width] = unreachable
        _fill_subtree(plan, tree, subtree)
        for step in range(offsets[tree], offsets[tree + 1]):
            here, there = row[step], row_above[step]
            own, whole = slot[step], slot_top[step]
            if here == there:
                for column in range(width):
                    inside = subtree[own, column] > 0
                    distance[here, column] = depth[tree, column] if inside else unreachable
                continue
            for word in range(words.shape[1]):
                nearer = subtree_words[own, word]
                farther = subtree_words[whole, word] - nearer
                words[here, word] = words[there, word] + farther - nearer


@njit(cache=True, nogil=True)
def _fill_subtree(plan: Plan, tree: int, subtree: NDArray[np.uint8]) -> None:
    """Lay a 0/1 row of the columns below and of each node, from the leaves upwards.

    The row of a node that shows its parent's stays empty: its column belongs to the parent, so in
    `fill_distance` it takes no step.
    """
    offsets, slot, slot_above, _, _, _, length, owner, _ = plan
    words = subtree.view(np.uint64)
    words[:] = 0
    for column in range(length[tree]):
        subtree[owner[tree, column], column] = 1
    for step in range(offsets[tree + 1] - 1, offsets[tree] - 1, -1):
        here, there = slot_above[step], slot[step]
        for word in range(words.shape[1]):
            words[here, word] |= words[there, word]
