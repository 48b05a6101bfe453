"""Memory that batches are written into again and again."""

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

    A fresh array of some megabytes costs more in page faults than a kernel takes to fill it, so a
    loop over batches keeps one of these (or a ring of them).

    **Life time.** The arrays of a batch are views of this memory: they hold until the next call
    with the same buffers, which overwrites them. Copy what must live longer, or take turns with as
    many buffers as there are batches alive at once. One thread at a time.

    Args:
        allocate: Gives a contiguous uint8 array of as many bytes as asked; pass your own for
            pinned or shared memory.

    >>> buffers = MatrixBuffers()
    >>> buffers.take("depth", (2, 3), np.uint8).shape
    (2, 3)
    """

    def __init__(self, allocate: Callable[[int], NDArray[np.uint8]] = _allocate) -> None:
        self._allocate = allocate
        self._blocks: dict[str, NDArray[np.uint8]] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """A contiguous array in the block ``name``; its content is whatever was there."""
        dtype = np.dtype(dtype)
        size = prod(shape) * dtype.itemsize
        block = self._blocks.get(name)
        if block is None or len(block) < size:
            block = self._blocks[name] = self._allocate(size)
        return np.ndarray(shape, dtype, block)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(len(block) for block in self._blocks.values())
