"""Compiled passes of the relations beyond distance, depth and ancestor, over columns of `Nodes`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from syntax.compiled import njit

IntArray = NDArray[np.int32]

NO_NODE = -1

FAR = np.int32(2**31 - 1)
"""Edges from a path that a node is not below."""


@njit(cache=True, nogil=True)
def fill_common(parents: IntArray, order: IntArray, common: IntArray) -> None:
    """Write lowest common ancestors of every two nodes; ``common`` (L, L) comes with `NO_NODE`."""
    for index in range(len(order)):
        node = order[index]
        above = parents[node]
        common[node, node] = node
        if above < 0:
            continue
        for earlier in range(index):
            other = order[earlier]
            meeting = common[above, other]
            common[node, other] = meeting
            common[other, node] = meeting


@njit(cache=True, nogil=True)
def climb(parents: IntArray, depth: IntArray, left: int, right: int) -> int:
    """Lowest common ancestor of two nodes, or `NO_NODE`."""
    while left != right:
        if depth[left] >= depth[right]:
            left = parents[left]
        else:
            right = parents[right]
        if left < 0 or right < 0:
            return NO_NODE
    return left


@njit(cache=True, nogil=True)
def climb_pairs(
    parents: IntArray, depth: IntArray, left: IntArray, right: IntArray, common: IntArray
) -> None:
    for pair in range(len(left)):
        common[pair] = climb(parents, depth, left[pair], right[pair])


@njit(cache=True, nogil=True)
def off_path(
    parents: IntArray,
    order: IntArray,
    depth: IntArray,
    root: IntArray,
    marked: NDArray[np.bool_],
    edges: IntArray,
) -> None:
    """Write how many edges each node is below the paths from marked nodes to their common ancestor.

    The ancestor is the lowest one of a tree. Nodes that are not below a path have `FAR`.
    """
    top = np.full(len(order), NO_NODE, np.int32)  # by root
    for node in range(len(order)):
        if marked[node]:
            so_far = top[root[node]]
            top[root[node]] = node if so_far < 0 else climb(parents, depth, so_far, node)
    edges[:] = FAR
    for node in range(len(order)):
        if marked[node]:
            at = node
            while edges[at] != 0:
                edges[at] = 0
                if at == top[root[node]]:
                    break
                at = parents[at]
    for index in range(len(order)):
        node = order[index]
        above = parents[node]
        if above >= 0 and edges[node] != 0 and edges[above] != FAR:
            edges[node] = edges[above] + 1


@njit(cache=True, nogil=True)
def fold_subtrees(
    parents: IntArray,
    order: IntArray,
    reach: IntArray,
    size: IntArray,
    first: IntArray,
    last: IntArray,
) -> None:
    """Replace values of every node by those of its subtree; negative places do not count.

    ``reach`` becomes the largest depth, ``size`` the sum, and ``first`` and ``last`` the bounds.
    """
    for index in range(len(order) - 1, -1, -1):
        node = order[index]
        above = parents[node]
        if above < 0:
            continue
        reach[above] = max(reach[above], reach[node])
        size[above] += size[node]
        last[above] = max(last[above], last[node])
        if first[node] >= 0 and (first[above] < 0 or first[node] < first[above]):
            first[above] = first[node]


@njit(cache=True, nogil=True)
def fill_spans(first: IntArray, last: IntArray, spans: NDArray[np.bool_]) -> None:
    """Write True from row ``first`` to row ``last`` of every column. *Shape:* (L, L)."""
    for column in range(len(first)):
        for row in range(first[column], last[column] + 1):
            spans[row, column] = True
