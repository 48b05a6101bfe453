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
from syntax.matrices.offsets import Offsets, round_up

UNREACHABLE8 = 255
"""Distance between two trees in uint8 matrices; real paths end at 254."""

UNREACHABLE16 = 65535
"""Distance between two trees in uint16 matrices."""

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
    stride = round_up(width, 8)
    plan, extra = _plan(forest, count, stride)
    rows = (count * stride + extra, stride)
    filled: dict[str, NDArray[Any]] = {}
    if "depth" in wanted:
        filled["depth"] = buffers.take("depth", (count, width), forest.dtype)
        filled["depth"][:] = plan.depth[:, :width]
    if "distance" in wanted:
        distance = buffers.take("distance", rows, forest.dtype)
        kernels.fill_distance(plan, distance)
        filled["distance"] = _trim("distance", distance, count, width, buffers)
    if "ancestor" in wanted:
        ancestor = buffers.take("ancestor", rows, np.uint8)
        kernels.fill_ancestor(plan, ancestor)
        filled["ancestor"] = _trim("ancestor", ancestor.view(np.bool_), count, width, buffers)
    return filled


def _plan(forest: Forest, count: int, stride: int) -> tuple[kernels.Plan, int]:
    slot, above, top, row, row_above = np.empty((5, len(forest.depth)), np.uint32)
    plan = kernels.Plan(
        offsets=np.empty(count + 1, np.int64),
        slot=slot,
        slot_above=above,
        slot_top=top,
        row=row,
        row_above=row_above,
        length=np.empty(count, np.int32),
        owner=np.empty((count, stride), np.uint32),
        depth=np.empty((count, stride), np.int32),
    )
    return plan, kernels.make_plan(forest.trees, forest.depth, plan)


def _trim(
    name: str, rows: NDArray[Any], count: int, width: int, buffers: MatrixBuffers
) -> NDArray[Any]:
    """The (T, width, width) matrices among rows that are padded to whole words."""
    stride = rows.shape[1]
    padded = rows[: count * stride].reshape(count, stride, stride)
    if stride == width:
        return padded
    trimmed = buffers.take(f"{name}, trimmed", (count, width, width), rows.dtype)
    trimmed[:] = padded[:, :width, :width]
    return trimmed
