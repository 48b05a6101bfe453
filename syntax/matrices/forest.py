"""Checked trees in flat arrays, and padded matrices from them in memory that is used again."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from syntax.errors import InputError
from syntax.matrices import kernels
from syntax.matrices.heads import IntArray
from syntax.matrices.offsets import Offsets, round_up, sizes

UNREACHABLE8 = 255
"""Distance between two trees in uint8 matrices; real paths end at 254."""

UNREACHABLE16 = 65535

COMPILED = ("distance", "depth", "ancestor")
"""Matrices that one compiled pass makes together; their full names end in ``.v1``."""


def _allocate(size: int) -> NDArray[np.uint8]:
    return np.empty(size, np.uint8)


class MatrixBuffers:
    """Named blocks of memory, each as large as the largest array it has held.

    The page faults of a new array take longer than the kernel that fills it, so a loop over
    batches reuses one of these, or several in turn.

    **Lifetime.** The arrays of a batch are views of this memory: the next call with the same
    buffers overwrites them. Not safe for several threads. ``allocate`` returns a contiguous uint8
    array of so many bytes, for example in pinned or shared memory.

    >>> buffers = MatrixBuffers()
    >>> buffers.take("depth", (2, 3), np.uint8).shape
    (2, 3)
    """

    def __init__(self, allocate: Callable[[int], NDArray[np.uint8]] = _allocate) -> None:
        self._allocate = allocate
        self._blocks: dict[str, NDArray[np.uint8]] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """A contiguous array in the block ``name``, with undefined content."""
        dtype = np.dtype(dtype)
        size = prod(shape) * dtype.itemsize
        block = self._blocks.get(name)
        if block is None or len(block) < size:
            block = self._blocks[name] = self._allocate(size)
        return np.ndarray(shape, dtype, block)

    @property
    def nbytes(self) -> int:
        return sum(len(block) for block in self._blocks.values())


@dataclass(frozen=True, slots=True)
class Forest:
    """T checked trees; ``longest`` bounds the edges on any path, exactly if it is 255 or more."""

    trees: kernels.Trees
    depth: IntArray
    longest: int

    @property
    def dtype(self) -> type[np.uint8] | type[np.uint16]:
        """uint8, or uint16 when a path of any tree exceeds 254 edges; 65534 are the most."""
        if self.longest >= UNREACHABLE16:
            raise InputError(
                f"a path has {self.longest} edges; matrices hold at most {UNREACHABLE16 - 1}, so "
                "split the text, or ask for no matrices"
            )
        return np.uint8 if self.longest < UNREACHABLE8 else np.uint16


def build_forest(
    order: kernels.OrderedTrees, offsets: Offsets, source: IntArray, column: IntArray
) -> Forest:
    """Trees with the row (``source``) and ``column`` (-1 for none) that nodes show. (N,) each."""
    trees = kernels.Trees(offsets, order.parents, order.order, order.root, source, column)
    # No path is longer than twice the largest depth; few forests need the exact length.
    longest = 2 * int(order.depth.max(initial=0))
    if longest >= UNREACHABLE8:
        longest = kernels.longest_path(order.parents, order.order)
    return Forest(trees, order.depth, longest)


def write_matrices(
    forest: Forest, width: int, wanted: Collection[str], buffers: MatrixBuffers
) -> dict[str, NDArray[Any]]:
    """The wanted ones of `COMPILED`: depth (T, width), others (T, width, width)."""
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
    largest = (
        int(sizes(forest.trees.offsets).max(initial=0)) if any(map(len, squares.values())) else 0
    )
    rows = (largest, round_up(width, kernels.VECTOR))
    scratch = kernels.Scratch(
        *(buffers.take(name, rows, forest.dtype) for name in kernels.Scratch._fields)
    )
    kernels.fill_matrices(forest.trees, forest.depth, scratch, depth, **squares)
    squares["ancestor"] = squares["ancestor"].view(np.bool_)
    return {name: array for name, array in {"depth": depth, **squares}.items() if name in wanted}
