from __future__ import annotations

from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurestore.tables.encode.columns import (
    arrow_of,
    binary_column,
    binary_numbers,
    list_column,
    list_parts,
    numpy_of,
    offsets_of,
    strings,
)

ragged = st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5), max_size=6)


def flat(rows: list[list[int]]) -> list[int]:
    return list(chain.from_iterable(rows))


def chunked(array: pa.Array, cut: int) -> pa.ChunkedArray:
    """The same column, in two chunks of which the second does not start at 0."""
    return pa.chunked_array([array[:cut], array[cut:]], array.type)


@given(ragged, st.integers(0, 6))
def test_list_columns_come_back(rows, cut) -> None:
    column = list_column([len(row) for row in rows], pa.array(flat(rows), pa.int32()))
    assert column.to_pylist() == rows
    offsets, values = list_parts(chunked(column, cut))
    bounds = pairwise(offsets)
    assert [values[a:z].to_pylist() for a, z in bounds] == rows


@given(ragged, st.integers(0, 6), st.sampled_from(["int32", "int64"]))
def test_binary_columns_come_back(rows, cut, dtype) -> None:
    starts = offsets_of(map(len, rows))
    column = binary_column(starts, np.array(flat(rows), dtype))
    little = np.dtype(dtype).newbyteorder("<")
    assert [np.frombuffer(blob.as_py(), little).tolist() for blob in column] == rows
    assert binary_numbers(chunked(column, cut), dtype).tolist() == flat(rows)


def test_a_slice_of_a_binary_column_gives_its_own_numbers() -> None:
    column = binary_column(np.array([0, 2, 3, 6]), np.arange(6, dtype=np.int32))
    assert binary_numbers(pa.chunked_array([column[1:]]), "int32").tolist() == [2, 3, 4, 5]


def test_repeated_strings_are_one_object() -> None:
    array = pa.array(["verb", "noun", None, "noun"])
    values = strings(array[1:])
    assert values == ["noun", None, "noun"]
    assert values[0] is values[2]


@given(st.lists(st.integers(0, 255)), st.sampled_from(["uint8", "int32", "int64", "float32"]))
def test_numbers_are_the_same_in_arrow(numbers, dtype) -> None:
    array = arrow_of(np.array(numbers, dtype)[::-1])
    assert array.equals(pa.array(numbers[::-1], pa.from_numpy_dtype(dtype)))
    assert numpy_of(array[1:]).tolist() == numbers[::-1][1:]


@pytest.mark.filterwarnings("ignore:Exporting an unversioned")
def test_missing_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match="null"):
        numpy_of(pa.array([1, None]))


def test_empty_columns_are_empty() -> None:
    assert binary_numbers(pa.chunked_array([], pa.binary()), "int32").tolist() == []
    assert strings(pa.array([], pa.string())) == []
