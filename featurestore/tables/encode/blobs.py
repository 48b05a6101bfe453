"""Matrices of one segment as bytes, in the columns distance, depth and ancestor.

*distance*: L x L numbers, row by row, uint8 or little-endian uint16 (the length tells which, since
no square is twice another). *depth*: L numbers of the same two kinds. *ancestor*: L rows of
ceil(L / 8) bytes, one bit per column, the first column in the lowest bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import isqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.errors import StoreFormatError
from syntax.matrices import MatrixBuffers, batch_matrices, tree_matrices

Blobs = tuple[bytes, bytes, bytes]
"""Distance, depth and ancestor of one segment."""

_GROUP: Final = 64

_GROUP_CELLS: Final = 4_000_000
"""Cells of a matrix of one pass, at most, unless a single segment has more."""


def matrix_blobs(head: NDArray[np.integer[Any]]) -> Blobs:
    """Blobs of an attach tree (L,): -1 at sentence roots, -2 at pieces without a word or path."""
    matrices = tree_matrices(head)
    return (
        pack_numbers(matrices.distance),
        pack_numbers(matrices.depth),
        pack_bits(matrices.ancestor),
    )


def many_matrix_blobs(heads: Sequence[NDArray[np.integer[Any]]]) -> list[Blobs]:
    """`matrix_blobs` of each of many segments, five times faster.

    Segments of similar length share a pass; an array that comes several times is laid out once.
    """
    distinct = sorted({id(head): head for head in heads}.values(), key=len)
    buffers = MatrixBuffers()
    blobs: dict[int, Blobs] = {}
    for group in _groups(distinct):
        blobs.update(zip(map(id, group), _group_blobs(group, buffers), strict=True))
    return [blobs[id(head)] for head in heads]


def _groups(
    ascending: Sequence[NDArray[np.integer[Any]]],
) -> list[list[NDArray[np.integer[Any]]]]:
    groups: list[list[NDArray[np.integer[Any]]]] = []
    for head in ascending:
        full = not groups or len(groups[-1]) == _GROUP
        if full or (len(groups[-1]) + 1) * len(head) ** 2 > _GROUP_CELLS:
            groups.append([])
        groups[-1].append(head)
    return groups


def _group_blobs(group: Sequence[NDArray[np.integer[Any]]], buffers: MatrixBuffers) -> list[Blobs]:
    offsets = np.fromiter(accumulate(map(len, group), initial=0), np.int64)
    matrices = batch_matrices(np.concatenate(group), offsets, buffers, pad_to_multiple_of=8)
    if matrices.distance.dtype != np.uint8:
        # One path over 254 edges widens the pass, but only its own segment is stored in uint16.
        return [matrix_blobs(head) for head in group]
    bits = np.packbits(matrices.ancestor, axis=2, bitorder="little")
    return [
        (
            matrices.distance[n, :size, :size].tobytes(),
            matrices.depth[n, :size].tobytes(),
            bits[n, :size, : -(-size // 8)].tobytes(),
        )
        for n, size in enumerate(map(len, group))
    ]


def pack_numbers(numbers: NDArray[Any]) -> bytes:
    return numbers.astype(numbers.dtype.newbyteorder("<"), copy=False).tobytes()


def pack_bits(ancestor: NDArray[np.bool_]) -> bytes:
    return np.packbits(ancestor, axis=1, bitorder="little").tobytes()


def decode_distance(blob: bytes) -> NDArray[Any]:
    """Distances of a segment. *Shape:* (L, L), uint8 or uint16; the maximum is "no path"."""
    size = isqrt(len(blob))
    if size * size == len(blob):
        return np.frombuffer(blob, np.uint8).reshape(size, size)
    size = isqrt(len(blob) // 2)
    if 2 * size * size != len(blob):
        raise StoreFormatError(f"a distance blob of {len(blob)} bytes holds no square matrix")
    return np.frombuffer(blob, "<u2").reshape(size, size)


def decode_depth(blob: bytes, length: int) -> NDArray[Any]:
    """Depths of a segment of a known number of pieces. *Shape:* (L,), uint8 or uint16."""
    if len(blob) not in (length, 2 * length):
        raise StoreFormatError(f"a depth blob of {len(blob)} bytes is not about {length} pieces")
    return np.frombuffer(blob, np.uint8 if len(blob) == length else "<u2")


def decode_ancestor(blob: bytes) -> NDArray[np.bool_]:
    """Ancestor relation of a segment. *Shape:* (L, L), bool; row = dependent."""
    size = _rows_of_bits(len(blob))
    bits = np.frombuffer(blob, np.uint8).reshape(size, -1) if size else np.empty((0, 0), np.uint8)
    return np.unpackbits(bits, axis=1, count=size, bitorder="little").astype(bool)


def _rows_of_bits(size: int) -> int:
    """The L for which L rows of ceil(L / 8) bytes make ``size`` bytes."""
    for length in range(isqrt(8 * size) + 1, -1, -1):
        if length * -(-length // 8) == size:
            return length
    raise StoreFormatError(f"an ancestor blob of {size} bytes holds no square matrix")
