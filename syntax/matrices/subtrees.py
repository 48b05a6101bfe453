"""Subtrees: height, size, and the span from the first to the last node (the yield)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.matrices import relations
from syntax.matrices.nodes import Nodes

IntArray = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Subtrees:
    """The subtree of each of L nodes, itself included. *Shape:* (L,) each.

    Attributes:
        height: Edges down to its deepest node, 0 at leaves.
        first, last: Its first and last node in the text, of the kept ones if truncated; else -1.
        is_projective: True if it holds all nodes from its first to its last.
    """

    height: IntArray
    size: IntArray
    first: IntArray
    last: IntArray
    is_projective: NDArray[np.bool_]


def subtrees(
    parents: ArrayLike, *, source: ArrayLike | None = None, column: ArrayLike | None = None
) -> Subtrees:
    """Subtree of every node; ``column`` (L,) gives places, ascending, and -1 for deleted nodes.

    Height, size and projectivity are those of the whole subtree. A node that shows its parent
    counts in sizes, but adds no edge to a height. ``parents`` and ``source`` are as in
    `tree_matrices`.

    >>> found = subtrees([1, -1, 1, 2])     # she <- saw -> dogs -> barking
    >>> found.height.tolist(), found.size.tolist()
    ([0, 2, 1, 0], [1, 4, 2, 1])
    >>> found.first.tolist(), found.last.tolist()
    ([0, 0, 2, 3], [0, 3, 3, 3])
    """
    return subtrees_of(Nodes.of(parents, source), column)


def subtrees_of(nodes: Nodes, column: ArrayLike | None = None) -> Subtrees:
    reach = nodes.shown(nodes.depth)
    size = np.ones(len(nodes), np.int32)
    place = np.arange(len(nodes), dtype=np.int32)
    first, last = place.copy(), place.copy()
    relations.fold_subtrees(nodes.parents, nodes.order, reach, size, first, last)
    whole = last - first + 1 == size
    if column is not None:
        first = nodes.column("column", column, np.int32).copy()
        last = first.copy()
        relations.fold_subtrees(nodes.parents, nodes.order, reach, size.copy(), first, last)
    columns = (reach - nodes.depth, size, first, last, whole)
    return Subtrees(*(nodes.shown(values) for values in columns))


def subtree_height(parents: ArrayLike, *, source: ArrayLike | None = None) -> IntArray:
    """Edges from each node down to the deepest node below it; 0 at leaves."""
    return subtrees(parents, source=source).height


def subtree_size(parents: ArrayLike, *, source: ArrayLike | None = None) -> IntArray:
    """Nodes below each node, itself included."""
    return subtrees(parents, source=source).size


def subtree_first(
    parents: ArrayLike, *, source: ArrayLike | None = None, column: ArrayLike | None = None
) -> IntArray:
    """First place of the yield of each node."""
    return subtrees(parents, source=source, column=column).first


def subtree_last(
    parents: ArrayLike, *, source: ArrayLike | None = None, column: ArrayLike | None = None
) -> IntArray:
    """Last place of the yield of each node."""
    return subtrees(parents, source=source, column=column).last


def subtree_is_projective(
    parents: ArrayLike, *, source: ArrayLike | None = None
) -> NDArray[np.bool_]:
    """True for nodes whose yield is a span without gaps."""
    return subtrees(parents, source=source).is_projective
