"""Parent vectors at the door: converted, checked, and refused by name."""

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
"""What an error calls a tree, by its index: ``"tree 3 of the batch"``."""


def as_heads(values: ArrayLike) -> IntArray:
    """Any vector of integers as contiguous int32; what int32 cannot hold stays out of range.

    Raises:
        InputError: Not one dimension, or not integers.
    """
    heads = np.asarray(values)
    if heads.ndim != 1 or (heads.size and heads.dtype.kind not in "iu"):
        raise InputError(
            f"parents came as {heads.dtype} of shape {heads.shape}; give one vector of integers"
        )
    if heads.dtype.itemsize >= 4 and heads.dtype != np.int32:
        limits = np.iinfo(np.int32)
        heads = np.minimum(heads, limits.max)
        heads = heads if heads.dtype.kind == "u" else np.maximum(heads, limits.min)
    return for_numba(heads, np.int32)


def order(heads: IntArray, offsets: Offsets, name: Name) -> kernels.Order:
    """Check trees that lie end to end, each with heads that count within it.

    Raises:
        HeadOutOfRangeError: A head lies outside of its tree.
        CycleError: Following the heads never reaches a root.
    """
    result = kernels.Order(*np.empty((5, len(heads)), np.int32))
    node = kernels.order_trees(heads, offsets, result)
    if node >= 0:
        raise _fault(heads, offsets, node, name)
    return result


def link(heads: IntArray, offsets: Offsets, name: Name) -> IntArray:
    """The heads of trees that lie end to end as positions in the whole array; not all is checked.

    Raises:
        HeadOutOfRangeError: A head lies outside of its tree.
    """
    parents = np.empty_like(heads)
    node = kernels.link_trees(heads, offsets, parents)
    if node >= 0:
        raise _fault(heads, offsets, node, name)
    return parents


def _fault(heads: IntArray, offsets: Offsets, node: int, name: Name) -> TreeError:
    tree = owner_of(node, offsets)
    first, end = offsets[tree : tree + 2].tolist()
    return _explain(heads[first:end].tolist(), node - first, tree, name(tree))


def _explain(heads: list[int], node: int, tree: int, name: str) -> TreeError:
    """Why no root can be reached from a node."""
    seen: list[int] = []
    while node not in seen:
        if not ISOLATED <= heads[node] < len(heads):
            return HeadOutOfRangeError(
                f"{name}: node {node} has parent {heads[node]}; a parent is one of the "
                f"{len(heads)} nodes, counted from 0, or {ROOT} (a root) or {ISOLATED} (isolated)",
                tree=tree,
                node=node,
                parent=heads[node],
            )
        seen.append(node)
        node = heads[node]
    cycle = seen[seen.index(node) :]
    return CycleError(
        f"{name}: the parents of nodes {cycle} form a cycle; every node must reach a root",
        tree=tree,
        nodes=cycle,
    )
