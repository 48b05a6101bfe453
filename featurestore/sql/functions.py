"""SQL functions: matrices from heads, and the stored blobs as lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.func import PythonUDFType
from numpy.typing import NDArray

from featurestore.encode.blobs import decode_ancestor, decode_depth, decode_distance
from syntax.errors import (
    HeadOutOfRangeError,
    MissingHeadError,
    MultipleRootsError,
    StoreFormatError,
)
from syntax.matrices import ancestor_mask, tree_depth, tree_distance
from syntax.ud import DEPREL, UPOS

_NAMES: Final = pa.list_(pa.string())
_NUMBERS: Final = pa.list_(pa.uint16())
_NUMBER_ROWS: Final = pa.list_(_NUMBERS)
_BIT_ROWS: Final = pa.list_(pa.list_(pa.bool_()))


@dataclass(frozen=True)
class SqlFunction:
    """A function of one row.

    Attributes:
        name: Name in SQL.
        takes: SQL types of the arguments.
        gives: SQL type of the result.
        arrow: The same as Arrow type.
        call: From the arguments' Python values to the result's.
    """

    name: str
    takes: tuple[str, ...]
    gives: str
    arrow: pa.DataType
    call: Callable[..., Any]

    def register(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the function known to a connection."""
        # DuckDB counts the parameters of what it is given, so that one cannot be variadic.
        over_columns = self._over_one_column if len(self.takes) == 1 else self._over_two_columns
        connection.create_function(
            self.name, over_columns, list(self.takes), self.gives, type=PythonUDFType.ARROW
        )

    def _over_one_column(self, column: pa.ChunkedArray) -> pa.Array:
        return pa.array(map(self.call, column.to_pylist()), self.arrow)

    def _over_two_columns(self, first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.Array:
        return pa.array(map(self.call, first.to_pylist(), second.to_pylist()), self.arrow)


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
            "pieces, in the view segments, count from 0: see stored_distance and its like"
        )
    roots = int((parents == -1).sum())
    if roots > 1:
        raise MultipleRootsError(
            f"{roots} of the heads are 0; heads count within a sentence, so take them from the "
            "view sentences, one row per sentence"
        )
    return parents


def _reachable(distance: NDArray[Any]) -> list[list[int | None]]:
    """Distances as lists, NULL where there is no path."""
    none = np.iinfo(distance.dtype).max
    return [[None if value == none else value for value in row] for row in distance.tolist()]


def _tags(column: str, names: tuple[str, ...]) -> Callable[[bytes], list[str]]:
    def tags(blob: bytes) -> list[str]:
        if max(blob, default=0) >= len(names):
            raise StoreFormatError(
                f"a blob of {len(blob)} bytes has a {max(blob)}; the bytes of {column} are 0 to "
                f"{len(names) - 1}"
            )
        return [names[index] for index in blob]

    return tags


def _vector(blob: bytes) -> list[int]:
    if len(blob) % 4:
        raise StoreFormatError(
            f"a blob of {len(blob)} bytes is no int32 vector, which has 4 bytes a number; for upos "
            "and deprel there are upos_tags and deprel_tags"
        )
    numbers: list[int] = np.frombuffer(blob, "<i4").tolist()
    return numbers


FUNCTIONS: Final = (
    SqlFunction(
        "distance_matrix",
        ("INTEGER[]",),
        "USMALLINT[][]",
        _NUMBER_ROWS,
        lambda heads: tree_distance(_parents(heads)).tolist(),
    ),
    SqlFunction(
        "depth_vector",
        ("INTEGER[]",),
        "USMALLINT[]",
        _NUMBERS,
        lambda heads: tree_depth(_parents(heads)).tolist(),
    ),
    SqlFunction(
        "ancestor_matrix",
        ("INTEGER[]",),
        "BOOLEAN[][]",
        _BIT_ROWS,
        lambda heads: ancestor_mask(_parents(heads)).tolist(),
    ),
    SqlFunction(
        "stored_distance",
        ("BLOB",),
        "USMALLINT[][]",
        _NUMBER_ROWS,
        lambda blob: _reachable(decode_distance(blob)),
    ),
    SqlFunction(
        "stored_depth",
        ("BLOB", "INTEGER"),
        "USMALLINT[]",
        _NUMBERS,
        lambda blob, length: decode_depth(blob, length).tolist(),
    ),
    SqlFunction(
        "stored_ancestor",
        ("BLOB",),
        "BOOLEAN[][]",
        _BIT_ROWS,
        lambda blob: decode_ancestor(blob).tolist(),
    ),
    SqlFunction("vector", ("BLOB",), "INTEGER[]", pa.list_(pa.int32()), _vector),
    SqlFunction("upos_tags", ("BLOB",), "VARCHAR[]", _NAMES, _tags("upos", UPOS)),
    SqlFunction("deprel_tags", ("BLOB",), "VARCHAR[]", _NAMES, _tags("deprel", DEPREL)),
)
"""Every SQL function; docs/store.md describes each."""
