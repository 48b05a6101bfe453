"""Lowest common ancestors (LCA): of all pairs, of some pairs, of a set of nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.errors import InputError
from syntax.matrices import relations
from syntax.matrices.heads import as_heads
from syntax.matrices.nodes import Nodes

IntArray = NDArray[np.int32]


def lowest_common_ancestor(
    parents: ArrayLike, *, source: ArrayLike | None = None, column: ArrayLike | None = None
) -> IntArray:
    """Lowest common ancestor of each two nodes; -1 for nodes of different trees.

    A node descends from itself. *Shape:* (L, L), int32. ``parents`` and ``source`` are as in
    `tree_matrices`; ``column`` (L,) is the number to write for each node, by default its position,
    and -1 for a deleted one, which its nearest kept ancestor replaces.

    >>> lowest_common_ancestor([1, -1, 1, 2])
    array([[0, 1, 1, 1],
           [1, 1, 1, 1],
           [1, 1, 2, 2],
           [1, 1, 2, 3]], dtype=int32)
    """
    nodes = Nodes.of(parents, source)
    common = nodes.shown_pairs(_common(nodes))
    if column is None:
        return common
    shown = np.append(nodes.kept_columns(column), np.int32(relations.NO_NODE))
    return shown[common]


def lca_depth(parents: ArrayLike, *, source: ArrayLike | None = None) -> IntArray:
    """Depth of the lowest common ancestor; -1 for nodes of different trees.

    Truncation changes positions, but not depths. *Shape:* (L, L), int32.
    """
    nodes = Nodes.of(parents, source)
    depth = np.append(nodes.depth, np.int32(relations.NO_NODE))
    return depth[nodes.shown_pairs(_common(nodes))]


def common_ancestors(parents: ArrayLike, left: ArrayLike, right: ArrayLike) -> IntArray:
    """Lowest common ancestor of each of P pairs of nodes, -1 for different trees, in O(P x depth).

    >>> common_ancestors([1, -1, 1, 2], [0, 2], [3, 3]).tolist()
    [1, 2]
    """
    nodes = Nodes.of(parents)
    one, other = (_members(side, len(nodes)) for side in (left, right))
    if len(one) != len(other):
        raise InputError(f"there are {len(one)} left nodes and {len(other)} right ones; give pairs")
    common = np.empty(len(one), np.int32)
    relations.climb_pairs(nodes.parents, nodes.depth, one, other, common)
    return common


def common_ancestor(parents: ArrayLike, members: ArrayLike) -> int:
    """Lowest node that all members descend from; -1 if they are of different trees.

    >>> common_ancestor([1, -1, 1, 2], [2, 3])
    2
    """
    nodes = Nodes.of(parents)
    first, *others = _members(members, len(nodes)).tolist() or [None]
    if first is None:
        raise InputError("there are no members; give at least one node")
    common = int(first)
    for other in others:
        common = relations.climb(nodes.parents, nodes.depth, common, other) if common >= 0 else -1
    return int(common)


def _common(nodes: Nodes) -> IntArray:
    common = np.full((len(nodes), len(nodes)), relations.NO_NODE, np.int32)
    relations.fill_common(nodes.parents, nodes.order, common)
    return common


def _members(values: ArrayLike, size: int) -> IntArray:
    members = as_heads(values)
    outside = (members < 0) | (members >= size)
    if outside.any():
        raise InputError(
            f"there is no node {members[outside][0]}; the tree has nodes 0 to {size - 1}"
        )
    return members
