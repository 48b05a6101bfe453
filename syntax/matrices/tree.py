"""Distance, depth and ancestors within one tree or forest."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.errors import InputError
from syntax.matrices.forest import (
    COMPILED,
    UNREACHABLE8,
    UNREACHABLE16,
    Forest,
    MatrixBuffers,
    build_forest,
    write_matrices,
)
from syntax.matrices.heads import IntArray, Name, as_heads, order_heads
from syntax.matrices.offsets import Offsets, as_offsets, offsets_of, round_up, sizes


@dataclass(frozen=True, slots=True)
class TreeMatrices:
    """Matrices of one tree or forest (L nodes), or of a padded batch of B of them.

    Attributes:
        distance: Edges on the path between two nodes; the dtype's maximum where there is none,
            and in padding. *Shape:* (L, L) or (B, L, L), uint8, or uint16 when a path exceeds 254.
        depth: Edges from the root; 0 at roots and in padding. *Shape:* (L,) or (B, L), the dtype
            of ``distance``.
        ancestor: ``[i, j]`` is True if j is i or an ancestor of i; False in padding.
            *Shape:* (L, L) or (B, L, L), bool.
    """

    distance: NDArray[Any]
    depth: NDArray[Any]
    ancestor: NDArray[np.bool_]


def tree_matrices(parents: ArrayLike, source: ArrayLike | None = None) -> TreeMatrices:
    """All three matrices of one tree or forest.

    Args:
        parents: 0-based, -1 at roots (several make a forest), -2 at isolated nodes.
            *Shape:* (L,), any integer dtype.
        source: The node whose row and column each node shows: itself or its parent, as subword
            policies give it. Default: itself. *Shape:* (L,).

    >>> tree_matrices([1, -1, 1]).distance
    array([[0, 1, 2],
           [1, 0, 1],
           [2, 1, 0]], dtype=uint8)
    """
    return TreeMatrices(**_matrices(parents, COMPILED, source))


def tree_distance(parents: ArrayLike) -> NDArray[Any]:
    """Edges between every two nodes; the dtype's maximum between nodes of different trees.

    *Shape:* (L, L), uint8, or uint16 when a path exceeds 254 edges.
    """
    return _matrices(parents, ("distance",))["distance"]


def tree_depth(parents: ArrayLike) -> NDArray[Any]:
    """Edges from its root to every node.

    *Shape:* (L,), the dtype of `tree_distance`.
    """
    return _matrices(parents, ("depth",))["depth"]


def ancestor_mask(parents: ArrayLike) -> NDArray[np.bool_]:
    """``[i, j]`` is True if j is i or an ancestor of i."""
    return _matrices(parents, ("ancestor",))["ancestor"]


def batch_matrices(
    heads: ArrayLike,
    offsets: ArrayLike,
    out: MatrixBuffers | None = None,
    pad_to_multiple_of: int = 1,
) -> TreeMatrices:
    """Matrices of B trees, padded to the largest; ``heads`` (N,) count within each tree."""
    values = as_heads(heads)
    bounds = as_offsets(offsets, len(values))
    if pad_to_multiple_of < 1:
        raise InputError(f"pad_to_multiple_of is {pad_to_multiple_of}; it must be at least 1")
    width = round_up(int(sizes(bounds).max(initial=0)), pad_to_multiple_of)
    forest = _forest(values, bounds, None, lambda tree: f"tree {tree} of the batch")
    return TreeMatrices(
        **write_matrices(forest, width, COMPILED, MatrixBuffers() if out is None else out)
    )


def tree_depths(heads: ArrayLike, offsets: ArrayLike) -> NDArray[Any]:
    """`tree_depth` of T trees end to end, given as in `batch_matrices`. *Shape:* (N,)."""
    values = as_heads(heads)
    forest = _forest(values, as_offsets(offsets, len(values)), None, lambda _: "the tree")
    return forest.depth.astype(forest.dtype)


def tree_squares(
    heads: ArrayLike, offsets: ArrayLike, wanted: Literal["distance", "ancestor"]
) -> NDArray[Any]:
    """`tree_distance` (uint16) or `ancestor_mask` of T trees, row by row and end to end.

    Without a path a distance is `UNREACHABLE16`. *Shape:* (sum of the squared sizes,).
    """
    values = as_heads(heads)
    bounds = as_offsets(offsets, len(values))
    lengths = sizes(bounds)
    starts = offsets_of(lengths**2)
    cells = np.empty(starts[-1], np.bool_ if wanted == "ancestor" else np.uint16)
    buffers = MatrixBuffers()
    for group in _alike(lengths):
        own = np.concatenate([values[bounds[tree] : bounds[tree + 1]] for tree in group])
        forest = _forest(own, offsets_of(lengths[group]), None, lambda _: "the tree")
        width = int(lengths[group[-1]])
        squares = write_matrices(forest, width, (wanted,), buffers)[wanted]
        if squares.dtype == np.uint8:
            squares = np.where(squares == UNREACHABLE8, UNREACHABLE16, squares.astype(np.uint16))
        for tree, square in zip(group, squares, strict=True):
            size = lengths[tree]
            cells[starts[tree] : starts[tree + 1]] = square[:size, :size].ravel()
    return cells


_GROUP: Final = 64

_GROUP_CELLS: Final = 1_000_000


def _alike(lengths: NDArray[np.int64]) -> Iterator[NDArray[np.intp]]:
    """Trees in groups of like size, the smallest first, the largest of each group last."""
    order = np.argsort(lengths, kind="stable")
    start = 0
    while start < len(order):
        end = start + 1
        for size in lengths[order[end : start + _GROUP]].tolist():
            if (end - start + 1) * size**2 > _GROUP_CELLS:
                break
            end += 1
        yield order[start:end]
        start = end


def one_forest(parents: ArrayLike, source: ArrayLike | None = None) -> Forest:
    heads = as_heads(parents)
    bounds = np.array((0, len(heads)), np.int64)
    if source is None:
        return _forest(heads, bounds, None, lambda _: "the tree")
    sources, nodes = as_heads(source), np.arange(len(heads))
    if sources.shape != heads.shape or not ((sources == nodes) | (sources == heads)).all():
        raise InputError("every node's source must be the node itself or its parent")
    if (sources < 0).any() or (sources[sources] != sources).any():
        raise InputError("a node that shows its parent cannot be the source of another")
    return _forest(heads, bounds, sources, lambda _: "the tree")


def _matrices(
    parents: ArrayLike, wanted: Collection[str], source: ArrayLike | None = None
) -> dict[str, NDArray[Any]]:
    return matrices_of_one(one_forest(parents, source), wanted)


def matrices_of_one(forest: Forest, wanted: Collection[str]) -> dict[str, NDArray[Any]]:
    """The wanted ones of `COMPILED` of one checked tree. *Shape:* (L,) or (L, L)."""
    filled = write_matrices(forest, len(forest.depth), wanted, MatrixBuffers())
    return {name: matrix[0] for name, matrix in filled.items()}


def _forest(heads: IntArray, bounds: Offsets, source: IntArray | None, name: Name) -> Forest:
    own = np.arange(len(heads), dtype=np.int32)
    found = order_heads(heads, bounds, name)
    return build_forest(found, bounds, own if source is None else source, found.place)
