"""Ragged Arrow columns from flat values, and flat NumPy views of ragged columns.

`pa.array`, `pa.scalar`, `pa.Array.to_numpy` and `pa.Schema.empty_table` import pandas, where that
is installed, for a third of a second: nothing here does, so that no reader waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def numpy_of(array: pa.Array) -> NDArray[Any]:
    """Numbers without nulls, as a view that cannot be written to."""
    return np.from_dlpack(array)


def arrow_of(numbers: NDArray[np.number[Any]]) -> pa.Array:
    """The same numbers as a view of Arrow's. *Shape:* (N,)."""
    flat = np.ascontiguousarray(numbers)
    assert flat.dtype.kind in "iuf", flat.dtype  # Arrow has eight truth values in a byte
    assert flat.dtype.isnative, flat.dtype
    buffers = [None, pa.py_buffer(flat)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(flat.dtype), len(flat), buffers)


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


def are_there(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Mask of the items that are not null. *Shape:* (N,)."""
    return numpy_of(one_array(column.is_valid().cast("uint8"))).astype(np.bool_)


def empty_table(schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches([], schema)


def list_parts(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], pa.Array]:
    """Offsets (starting at 0) and values of a ``list<>`` column."""
    array = one_array(column)
    offsets = numpy_of(array.offsets).astype(np.int64)
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


def strings(array: pa.StringArray) -> list[Any]:
    """Its Python values, of which equal ones are one object."""
    values, indices = distinct(array)
    return list(np.array(values, dtype=object)[indices])


def distinct(array: pa.StringArray) -> tuple[list[Any], NDArray[np.int32]]:
    """Its values, ``None`` among them, each once, and for each item the position of its value."""
    encoded = array.dictionary_encode(null_encoding="encode")
    return encoded.dictionary.to_pylist(), numpy_of(encoded.indices)
