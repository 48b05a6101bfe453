"""The compiled passes over parent vectors.

Trees lie end to end in flat int32 arrays, tree ``t`` from ``offsets[t]`` to ``offsets[t + 1]``. All
passes are linear in the nodes, except `fill_matrices`, which is linear in the cells. Each argument
has one dtype, so that each pass is compiled once (`fill_matrices` for uint8 and for uint16).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from syntax.compiled import intrinsic, njit

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
    descendants. ``stride`` is the width of the batch rounded up to whole vectors.
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
        in_place = stride == width and _is_identity(slots, length, used)
        rows = distance[tree] if in_place and len(distance) else scratch.rows
        _mark_own(slots, length, scratch.below[:used])
        if len(ancestor):
            if in_place and rows.itemsize == ancestor.itemsize:
                _fill_ancestors(slots, count, scratch.below, ancestor[tree])
            else:
                _fill_ancestors(slots, count, scratch.below, scratch.rows)
                _copy_rows(slots, length, scratch.rows, ancestor[tree])
            ancestor[tree, length:] = 0
        if len(distance):
            _fill_below(slots, count, scratch.below)
            _fill_rows(slots, count, scratch.below, rows)
            if not in_place:
                _copy_rows(slots, length, rows, distance[tree])
            distance[tree, length:] = np.iinfo(distance.dtype).max


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


VECTOR: Final = 32
"""Bytes that the instructions below read and write at once, as four 64-bit words.

LLVM also makes vectors of a plain loop, but checks before each row if its arrays overlap, which
takes as long as the row. Bytes are counted from the start of an array.
"""


@intrinsic
def _or_vector(_: Any, to: Any, to_at: Any, one: Any, at: Any, other: Any, other_at: Any) -> Any:
    """``to = one | other``."""

    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        target, *sources = _places(context, builder, signature, given)
        first, second = (builder.load(source, align=1) for source in sources)
        builder.store(builder.or_(first, second), target, align=1)
        return context.get_dummy_value()

    return _no_result(to, to_at, one, at, other, other_at), write


@intrinsic
def _step_vector(
    _: Any, to: Any, to_at: Any, row: Any, at: Any, tree: Any, tree_at: Any, near: Any, near_at: Any
) -> Any:
    """``to = row + (tree - near) - near``."""

    def write(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        target, *sources = _places(context, builder, signature, given)
        above, whole, nearer = (builder.load(source, align=1) for source in sources)
        farther = builder.add(above, builder.sub(whole, nearer))
        builder.store(builder.sub(farther, nearer), target, align=1)
        return context.get_dummy_value()

    return _no_result(to, to_at, row, at, tree, tree_at, near, near_at), write


def _no_result(*arguments: Any) -> Any:
    from numba.core import types

    return types.void(*arguments)


def _places(context: Any, builder: Any, signature: Any, given: Any) -> list[Any]:
    """Pointers to vectors, of pairs of an array and a byte in it."""
    from numba.core import cgutils

    tools: Any = cgutils
    byte, word = tools.ir.IntType(8), tools.ir.IntType(64)
    vector = tools.ir.VectorType(word, VECTOR // 8)
    places = []
    for kind, array, at in zip(signature.args[::2], given[::2], given[1::2], strict=True):
        data = tools.create_struct_proxy(kind)(context, builder, array).data
        start = builder.bitcast(data, byte.as_pointer())
        places.append(builder.bitcast(builder.gep(start, [at]), vector.as_pointer()))
    return places


@njit(cache=True, nogil=True)
def _mark_own(slots: Slots, length: int, below: NDArray[np.uint8]) -> None:
    """Write 1 in the columns that show each node."""
    below[:] = 0
    for column in range(length):
        below[slots.owner[column], column] = 1


@njit(cache=True, nogil=True)
def _fill_ancestors(
    slots: Slots, count: int, own: NDArray[np.uint8], rows: NDArray[np.uint8]
) -> None:
    """Write rows of ancestors, from each root downwards: a parent's and a node's own columns."""
    stride = own.strides[0]
    for index in range(count):
        here, there = np.intp(slots.own[index]) * stride, np.intp(slots.above[index]) * stride
        for at in range(0, stride, VECTOR):
            if here == there:
                _or_vector(rows, here + at, own, here + at, own, here + at)
            else:
                _or_vector(rows, here + at, rows, there + at, own, here + at)


@njit(cache=True, nogil=True)
def _fill_below(slots: Slots, count: int, below: NDArray[np.uint8]) -> None:
    """Add the columns of each node to its parent's, from the leaves upwards."""
    stride = below.strides[0]
    for index in range(count - 1, -1, -1):
        to, row = np.intp(slots.above[index]) * stride, np.intp(slots.own[index]) * stride
        for at in range(0, stride, VECTOR):
            _or_vector(below, to + at, below, to + at, below, row + at)


@njit(cache=True, nogil=True)
def _fill_rows(slots: Slots, count: int, below: NDArray[np.uint8], rows: NDArray[np.uint8]) -> None:
    """Write rows of distances, from each root downwards.

    A child is one edge nearer than its parent to the child's descendants, and one edge farther
    from the rest of the tree: ``distance[child] = distance[parent] + tree - 2 * below[child]``,
    where ``tree`` is the root's row of descendants. Nodes of other trees stay unreachable.

    Rows are added as 64-bit words, eight or four entries at once. That is exact: the result of
    each entry lies between 0 and the maximum, so that nothing is carried to the next entry.
    """
    unreachable, stride = np.iinfo(rows.dtype).max, below.strides[0]
    for index in range(count):
        here, there = slots.own[index], slots.above[index]
        if here == there:
            row, inside = rows[here], below[here]
            for column in range(len(row)):
                row[column] = slots.depth[column] if inside[column] else unreachable
            continue
        to, row_above = np.intp(here) * stride, np.intp(there) * stride
        tree = np.intp(slots.top[index]) * stride
        for at in range(0, stride, VECTOR):
            _step_vector(rows, to + at, rows, row_above + at, below, tree + at, below, to + at)


@njit(cache=True, nogil=True)
def _copy_rows(
    slots: Slots, length: int, rows: NDArray[np.uint8], shown: NDArray[np.uint8]
) -> None:
    for column in range(length):
        to, row = shown[column], rows[slots.owner[column]]
        for at in range(len(to)):
            to[at] = row[at]
