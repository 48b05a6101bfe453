"""Checked trees in flat arrays, and their way into padded matrices."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syntax.errors import InputError
from syntax.matrices import kernels
from syntax.matrices.buffers import MatrixBuffers
from syntax.matrices.heads import IntArray
from syntax.matrices.offsets import Offsets, round_up, sizes

UNREACHABLE8 = 255
"""Distance between two trees in uint8 matrices; real paths end at 254."""

UNREACHABLE16 = 65535
"""Distance between two trees in uint16 matrices."""

ROW_BYTES = 32
"""Rows of distances are padded to a multiple of this while they are made, so that no passes over
them has a rest of less than a vector."""

FUSED = ("distance", "depth", "ancestor")
"""The matrices that the compiled passes make together, each in its first version."""


@dataclass(frozen=True, slots=True)
class Forest:
    """T trees, N nodes in all, and what was found out while checking them.

    Attributes:
        trees: The nodes in flat arrays.
        depth: Edges from each node's root. *Shape:* (N,), int32.
        longest: An upper bound of the edges on any path, exact from 255 on.
    """

    trees: kernels.Trees
    depth: IntArray
    longest: int

    @property
    def dtype(self) -> type[np.uint8] | type[np.uint16]:
        """uint8, or uint16 when a path of any tree exceeds 254 edges.

        Raises:
            InputError: A path exceeds the 65534 edges that uint16 can tell from "unreachable".
        """
        if self.longest >= UNREACHABLE16:
            raise InputError(
                f"a path has {self.longest} edges; matrices hold at most {UNREACHABLE16 - 1}, so "
                "split the text, or ask for no matrices"
            )
        return np.uint8 if self.longest < UNREACHABLE8 else np.uint16


def grow(order: kernels.Order, offsets: Offsets, source: IntArray, column: IntArray) -> Forest:
    """Checked nodes, with what each is to show, and a bound of their longest path.

    Args:
        order: What `syntax.matrices.heads.order` found out.
        offsets: First node of each tree, and the end. *Shape:* (T + 1,).
        source: The node whose row and column a node shows. *Shape:* (N,).
        column: Column of a node in its tree's matrices, -1 for none. *Shape:* (N,).
    """
    trees = kernels.Trees(offsets, order.parents, order.order, order.root, source, column)
    # No path is longer than two of the deepest branch, so that few forests need measuring.
    longest = 2 * int(order.depth.max(initial=0))
    if longest >= UNREACHABLE8:
        longest = kernels.longest_path(order.parents, order.order)
    return Forest(trees, order.depth, longest)


def lay_out(
    forest: Forest, width: int, wanted: Collection[str], buffers: MatrixBuffers
) -> dict[str, NDArray[Any]]:
    """Write the wanted ones of `FUSED` into ``buffers``, as (T, width[, width])."""
    if not wanted:
        return {}
    count = len(forest.trees.offsets) - 1
    shape = (count, width, width)
    dtypes = {"distance": forest.dtype, "ancestor": np.uint8}
    squares = {
        name: buffers.take(name, shape if name in wanted else (0, width, width), dtype)
        for name, dtype in dtypes.items()
    }
    depth = buffers.take("depth", shape[:2], forest.dtype)
    room = _room(forest, width, buffers, rows=any(map(len, squares.values())))
    kernels.fill_matrices(forest.trees, forest.depth, room, depth, **squares)
    squares["ancestor"] = squares["ancestor"].view(np.bool_)
    return {name: array for name, array in {"depth": depth, **squares}.items() if name in wanted}


def _room(forest: Forest, width: int, buffers: MatrixBuffers, *, rows: bool) -> kernels.Room:
    largest = int(sizes(forest.trees.offsets).max(initial=0)) if rows else 0
    shape = (largest, round_up(width, ROW_BYTES))
    return kernels.Room(*(buffers.take(name, shape, forest.dtype) for name in kernels.Room._fields))
