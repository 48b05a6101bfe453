"""Ragged Arrow columns from flat values, and flat NumPy views of ragged columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def offsets_of(lengths: Iterable[int]) -> NDArray[np.int64]:
    """Start of each item, and end of the last. *Shape:* (N + 1,)."""
    sizes = np.fromiter(lengths, dtype=np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


def list_column(
    lengths: Sequence[int], values: pa.Array, missing: Sequence[bool] | None = None
) -> pa.ListArray:
    """A ``list<>`` column from the values of all rows, one after the other."""
    offsets = pa.array(offsets_of(lengths).astype(np.int32))
    mask = None if missing is None else pa.array(missing, pa.bool_())
    return pa.ListArray.from_arrays(offsets, values, mask=mask)


def binary_column(starts: NDArray[np.int64], values: NDArray[Any]) -> pa.BinaryArray:
    """A binary column of little-endian numbers; ``starts`` (N + 1,) counts in numbers."""
    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    offsets = (starts * little.itemsize).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(little.view(np.uint8))]
    return pa.BinaryArray.from_buffers(pa.binary(), len(starts) - 1, buffers)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def list_parts(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], pa.Array]:
    """Offsets (starting at 0) and values of a ``list<>`` column."""
    array = one_array(column)
    offsets = np.asarray(array.offsets).astype(np.int64)
    return offsets - offsets[0], array.flatten()


def binary_numbers(column: pa.ChunkedArray, dtype: str) -> NDArray[Any]:
    """All numbers of a binary column, one row after the other; a view where possible."""
    parts = [_numbers(chunk, dtype) for chunk in column.chunks if len(chunk)]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype), *parts])


def _numbers(array: pa.BinaryArray, dtype: str) -> NDArray[Any]:
    _, offset_buffer, data = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    size = int(offsets[-1] - offsets[0])
    if not size:
        return np.empty(0, dtype)
    raw = np.frombuffer(data, np.uint8, count=size, offset=int(offsets[0]))
    return raw.view(np.dtype(dtype).newbyteorder("<")).astype(dtype, copy=False)


def strings(column: pa.ChunkedArray) -> list[Any]:
    encoded = one_array(column).dictionary_encode() if len(column) else None
    return [] if encoded is None else shared_strings(encoded)


def shared_strings(encoded: pa.DictionaryArray) -> list[Any]:
    """The Python values of a dictionary column; equal strings are one object."""
    values = np.empty(len(encoded.dictionary) + 1, dtype=object)
    values[:-1] = encoded.dictionary.to_pylist()
    indices = encoded.indices.fill_null(len(encoded.dictionary))
    return list(values[np.asarray(indices)])
