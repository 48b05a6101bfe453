"""Compiled passes of the relations beyond distance, depth and ancestor.

``parents``, ``order``, ``depth`` and ``root`` are those of `syntax.matrices.nodes.Nodes`.
*Shape:* (L,), int32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from syntax.compiled import njit

IntArray = NDArray[np.int32]

NO_NODE = -1
"""In place of a node: there is none."""

FAR = np.int32(2**31 - 1)
"""Stands for the edges from a path that a node is not below."""


@njit(cache=True, nogil=True)
def fill_common(parents: IntArray, order: IntArray, common: IntArray) -> None:
    """Write the lowest common ancestor of every two nodes.

    A node that comes before ``node`` is not below it, so its common ancestor with ``node`` is that
    with the parent of ``node``.

    ``common`` comes filled with `NO_NODE`. *Shape:* (L, L).
    """
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
    """The lowest common ancestor of two nodes, or `NO_NODE`."""
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
    """Write the lowest common ancestor of each of P pairs. *Shape:* (P,) each but the first two."""
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
    """Write how many edges each node is below the paths between the marked nodes of its tree.

    The paths lead from every marked node up to the lowest common ancestor of all of them. Nodes on
    a path have 0, and nodes that are not below a path have `FAR`.
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
    """Replace the values of every node by those of its subtree.

    ``reach``, depths, become the largest depth in the subtree; ``size`` the sum; ``first`` and
    ``last``, places, the smallest and the largest. Negative places do not count.
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
