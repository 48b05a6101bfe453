"""Memory that successive batches reuse."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


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
