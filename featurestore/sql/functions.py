"""SQL functions: matrices from heads, and the stored blobs as lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.func import PythonUDFType
from numpy.typing import NDArray

from featurestore.tables.encode.blobs import decode_ancestor, decode_depth, decode_distance
from syntax.errors import (
    HeadOutOfRangeError,
    MissingHeadError,
    MultipleRootsError,
    StoreFormatError,
)
from syntax.matrices import ancestor_mask, tree_depth, tree_distance
from syntax.trees.ud import DEPREL, UPOS

Columns = Callable[[list[Any]], pa.Array]
"""From the results of the rows to a column."""


@dataclass(frozen=True)
class SqlFunction:
    """A function of one row.

    Attributes:
        name: Name in SQL.
        takes: SQL types of the arguments.
        gives: SQL type of the result.
        call: From the arguments' Python values to the result of a row.
        column: From the results to a column of that type.
    """

    name: str
    takes: tuple[str, ...]
    gives: str
    call: Callable[..., Any]
    column: Columns

    def register(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the function known to a connection."""
        # DuckDB counts the parameters of what it is given, so that one cannot be variadic.
        over_columns = self._over_one_column if len(self.takes) == 1 else self._over_two_columns
        connection.create_function(
            self.name, over_columns, list(self.takes), self.gives, type=PythonUDFType.ARROW
        )

    def _over_one_column(self, column: pa.ChunkedArray) -> pa.Array:
        return self.column([self.call(value) for value in column.to_pylist()])

    def _over_two_columns(self, first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.Array:
        return self.column(list(map(self.call, first.to_pylist(), second.to_pylist())))


def _parents(heads: Sequence[int | None]) -> NDArray[np.int32]:
    """Parents of one sentence from CoNLL-U heads."""
    if None in heads:
        raise MissingHeadError(
            f"the head of word {heads.index(None) + 1} is NULL; every word has one, 0 for the root"
        )
    parents = np.asarray(heads, dtype=np.int32) - np.int32(1)
    if (parents < -1).any():
        raise HeadOutOfRangeError(
            f"a head is {parents.min() + 1}; heads of words are 1-based, 0 for the root. Those of "
            "pieces, in the view segments, count from 0: see piece_distance and its like"
        )
    roots = int((parents == -1).sum())
    if roots > 1:
        raise MultipleRootsError(
            f"{roots} of the heads are 0; heads count within a sentence, so take them from the "
            "view sentences, one row per sentence"
        )
    return parents


def _piece_parents(heads: Sequence[int]) -> NDArray[np.int32]:
    """Parents of the pieces of one segment."""
    return np.asarray(heads, dtype=np.int32)


def _distances(matrices: list[NDArray[Any]]) -> pa.Array:
    """Distances as nested lists, NULL where there is no path."""
    flat = [np.empty(0, np.uint16), *(matrix.reshape(-1) for matrix in matrices)]
    lost = [np.empty(0, np.bool_), *(values == np.iinfo(values.dtype).max for values in flat[1:])]
    values = np.concatenate(flat, dtype=np.uint16)
    return _nested(matrices, pa.array(values, mask=np.concatenate(lost)))


def _bits(matrices: list[NDArray[np.bool_]]) -> pa.Array:
    """Relations as nested lists."""
    flat = [np.empty(0, np.bool_), *(matrix.reshape(-1) for matrix in matrices)]
    return _nested(matrices, pa.array(np.concatenate(flat)))


def _nested(matrices: list[NDArray[Any]], flat: pa.Array) -> pa.Array:
    """Square matrices as lists of lists of their values, which are laid out one after another."""
    sizes = np.array([len(matrix) for matrix in matrices], np.int64)
    rows = pa.ListArray.from_arrays(_offsets(np.repeat(sizes, sizes)), flat)
    return pa.ListArray.from_arrays(_offsets(sizes), rows)


def _offsets(sizes: NDArray[np.int64]) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())


def _tags(column: str, names: tuple[str, ...]) -> Callable[[bytes], list[str]]:
    def tags(blob: bytes) -> list[str]:
        if max(blob, default=0) >= len(names):
            raise StoreFormatError(
                f"a blob of {len(blob)} bytes has a {max(blob)}; the bytes of {column} are 0 to "
                f"{len(names) - 1}"
            )
        return [names[index] for index in blob]

    return tags


def _vector(blob: bytes) -> NDArray[Any]:
    if len(blob) % 4:
        raise StoreFormatError(
            f"a blob of {len(blob)} bytes is no int32 vector, which has 4 bytes a number; for upos "
            "and deprel there are upos_tags and deprel_tags"
        )
    return np.frombuffer(blob, "<i4")


_numbers: Final[Columns] = partial(pa.array, type=pa.list_(pa.uint16()))
_integers: Final[Columns] = partial(pa.array, type=pa.list_(pa.int32()))
_names: Final[Columns] = partial(pa.array, type=pa.list_(pa.string()))

_HEADS: Final = ("INTEGER[]",)
_DISTANCE: Final = "USMALLINT[][]"
_DEPTH: Final = "USMALLINT[]"
_ANCESTOR: Final = "BOOLEAN[][]"
_TAGS: Final = "VARCHAR[]"

FUNCTIONS: Final = (
    SqlFunction(
        "distance_matrix",
        _HEADS,
        _DISTANCE,
        lambda heads: tree_distance(_parents(heads)),
        _distances,
    ),
    SqlFunction(
        "depth_vector", _HEADS, _DEPTH, lambda heads: tree_depth(_parents(heads)), _numbers
    ),
    SqlFunction(
        "ancestor_matrix", _HEADS, _ANCESTOR, lambda heads: ancestor_mask(_parents(heads)), _bits
    ),
    SqlFunction(
        "piece_distance",
        _HEADS,
        _DISTANCE,
        lambda heads: tree_distance(_piece_parents(heads)),
        _distances,
    ),
    SqlFunction(
        "piece_depth", _HEADS, _DEPTH, lambda heads: tree_depth(_piece_parents(heads)), _numbers
    ),
    SqlFunction(
        "piece_ancestor",
        _HEADS,
        _ANCESTOR,
        lambda heads: ancestor_mask(_piece_parents(heads)),
        _bits,
    ),
    SqlFunction("stored_distance", ("BLOB",), _DISTANCE, decode_distance, _distances),
    SqlFunction("stored_depth", ("BLOB", "INTEGER"), _DEPTH, decode_depth, _numbers),
    SqlFunction("stored_ancestor", ("BLOB",), _ANCESTOR, decode_ancestor, _bits),
    SqlFunction("vector", ("BLOB",), "INTEGER[]", _vector, _integers),
    SqlFunction("upos_tags", ("BLOB",), _TAGS, _tags("upos", UPOS), _names),
    SqlFunction("deprel_tags", ("BLOB",), _TAGS, _tags("deprel", DEPREL), _names),
)
"""Every SQL function; docs/reference/store.md describes each."""
