"""Conversion and checks of parent vectors; errors name the tree and the node."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.errors import CycleError, HeadOutOfRangeError, InputError, TreeError
from syntax.matrices import kernels
from syntax.matrices.offsets import Offsets, for_numba, owner_of

IntArray = NDArray[np.int32]

ROOT = -1
"""Parent of a node that starts a tree."""

ISOLATED = -2
"""Parent of a node outside of every sentence: a root that no joint root takes in."""

Name = Callable[[int], str]
"""Gives the name of a tree in errors from its index, such as ``"tree 3 of the batch"``."""


def as_heads(values: ArrayLike) -> IntArray:
    """A vector of integers as contiguous int32; larger integers become the limits of int32."""
    heads = np.asarray(values)
    if heads.ndim != 1 or (heads.size and heads.dtype.kind not in "iu"):
        raise InputError(
            f"parents are {heads.dtype} of shape {heads.shape}; give one vector of integers"
        )
    if heads.dtype.itemsize >= 4 and heads.dtype != np.int32:
        limits = np.iinfo(np.int32)
        heads = np.minimum(heads, limits.max)
        heads = heads if heads.dtype.kind == "u" else np.maximum(heads, limits.min)
    return for_numba(heads, np.int32)


def order_heads(heads: IntArray, offsets: Offsets, name: Name) -> kernels.OrderedTrees:
    """Check trees end to end, and order their nodes; heads (N,) are positions within each tree."""
    result = kernels.OrderedTrees(*np.empty((5, len(heads)), np.int32))
    node = kernels.order_trees(heads, offsets, result)
    if node >= 0:
        raise _fault(heads, offsets, node, name)
    return result


def link_heads(heads: IntArray, offsets: Offsets, name: Name) -> IntArray:
    """Positions in the whole array, from heads as in `order_heads`; cycles are not checked."""
    parents = np.empty_like(heads)
    node = kernels.link_trees(heads, offsets, parents)
    if node >= 0:
        raise _fault(heads, offsets, node, name)
    return parents


def _fault(heads: IntArray, offsets: Offsets, node: int, name: Name) -> TreeError:
    tree = owner_of(node, offsets)
    first, end = offsets[tree : tree + 2].tolist()
    own: list[int] = heads[first:end].tolist()
    node -= first
    seen: list[int] = []
    while node not in seen:
        if not ISOLATED <= own[node] < len(own):
            return HeadOutOfRangeError(
                f"{name(tree)}: node {node} has parent {own[node]}; a parent is one of the "
                f"{len(own)} nodes, counted from 0, or {ROOT} (a root) or {ISOLATED} (isolated)",
                tree=tree,
                node=node,
                parent=own[node],
            )
        seen.append(node)
        node = own[node]
    cycle = seen[seen.index(node) :]
    return CycleError(
        f"{name(tree)}: the parents of nodes {cycle} form a cycle; every node must reach a root",
        tree=tree,
        nodes=cycle,
    )
