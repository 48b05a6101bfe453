"""Parent vectors at the door: converted, linked, and refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.errors import CycleError, HeadOutOfRangeError, InputError
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


def link(heads: IntArray, offsets: Offsets, name: Name) -> tuple[IntArray, IntArray]:
    """Heads that count within their tree, as positions in the flat array.

    Returns:
        The parents, and the position of each node within its tree. *Shape:* (N,) each.

    Raises:
        HeadOutOfRangeError: A head lies outside of its tree.
    """
    parents, place = np.empty((2, len(heads)), np.int32)
    node = kernels.link(heads, offsets, parents, place)
    if node >= 0:
        tree = owner_of(node, offsets)
        first, end = offsets[tree : tree + 2].tolist()
        raise HeadOutOfRangeError(
            f"{name(tree)}: node {node - first} has parent {heads[node]}; a parent is one of the "
            f"{end - first} nodes, counted from 0, or {ROOT} (a root) or {ISOLATED} (isolated)",
            tree=tree,
            node=node - first,
            parent=int(heads[node]),
        )
    return parents, place


def reject_cycles(parents: IntArray, offsets: Offsets, name: Name) -> None:
    """Raise `CycleError` if linked parents form one."""
    order, depth, root = np.empty((3, len(parents)), np.int32)
    node = kernels.order_trees(parents, offsets, order, depth, root)
    if node >= 0:
        reject_cycle(parents, offsets, node, name)


def reject_cycle(parents: IntArray, offsets: Offsets, node: int, name: Name) -> NoReturn:
    """Raise `CycleError` for a node from which no root can be reached."""
    tree = owner_of(node, offsets)
    first = int(offsets[tree])
    seen: list[int] = []
    while node not in seen:
        seen.append(node)
        node = int(parents[node])
    cycle = [at - first for at in seen[seen.index(node) :]]
    raise CycleError(
        f"{name(tree)}: the parents of nodes {cycle} form a cycle; every node must reach a root",
        tree=tree,
        nodes=cycle,
    )
