"""SQL functions: matrices from heads, and the stored blobs as lists, a column at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import PythonUDFType
from numpy.typing import NDArray

from featurestore.tables.encode.blobs import decode_ancestor, decode_depth, decode_distance
from featurestore.tables.encode.columns import binary_numbers, list_parts, one_array
from syntax.errors import (
    HeadOutOfRangeError,
    MissingHeadError,
    MultipleRootsError,
    StoreFormatError,
)
from syntax.matrices import UNREACHABLE16, tree_depths, tree_squares
from syntax.matrices.offsets import owner_of, sizes
from syntax.trees.ud import DEPREL, UPOS

Column: TypeAlias = pa.ChunkedArray
"""Values of an argument in some thousand rows, none of them null."""


@dataclass(frozen=True)
class SqlFunction:
    """A function of one row, called with columns of many; ``takes`` and ``gives`` are SQL types."""

    name: str
    takes: tuple[str, ...]
    gives: str
    call: Callable[..., pa.Array]

    def register(self, connection: duckdb.DuckDBPyConnection) -> None:
        # DuckDB counts the parameters of what it is given, so that one cannot be variadic.
        one: Callable[..., pa.Array] = lambda column: self.call(column)  # noqa: E731
        two: Callable[..., pa.Array] = lambda first, second: self.call(first, second)  # noqa: E731
        connection.create_function(
            self.name,
            one if len(self.takes) == 1 else two,
            list(self.takes),
            self.gives,
            type=PythonUDFType.ARROW,
        )


Trees = Callable[[Column], tuple[NDArray[np.int32], NDArray[np.int64]]]
"""Parents of the trees of a column, end to end, and where each tree starts."""


def _sentences(column: Column) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Parents of the words of sentences, from CoNLL-U heads."""
    heads, bounds = _segments(column)
    parents = heads - np.int32(1)
    if (parents < -1).any():
        raise HeadOutOfRangeError(
            f"a head is {parents.min() + 1}; heads of words are 1-based, 0 for the root. Those of "
            "pieces, in the view segments, count from 0: see piece_distance and its like"
        )
    before = np.concatenate([[0], np.cumsum(parents == -1)])
    roots = int(sizes(before[bounds]).max(initial=0))
    if roots > 1:
        raise MultipleRootsError(
            f"{roots} of the heads are 0; heads count within a sentence, so take them from the "
            "view sentences, one row per sentence"
        )
    return parents, bounds


def _segments(column: Column) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    bounds, heads = list_parts(column)
    if heads.null_count:
        at = int(np.flatnonzero(heads.is_null())[0])
        word = at - int(bounds[owner_of(at, bounds)]) + 1
        raise MissingHeadError(
            f"the head of word {word} is NULL; every word has one, 0 for the root"
        )
    return heads.to_numpy(), bounds


def _depths(trees: Trees, column: Column) -> pa.Array:
    parents, bounds = trees(column)
    depths = tree_depths(parents, bounds).astype(np.uint16)
    return _lists(bounds, pa.array(depths))


def _squares(wanted: Literal["distance", "ancestor"], trees: Trees, column: Column) -> pa.Array:
    parents, bounds = trees(column)
    cells = tree_squares(parents, bounds, wanted)
    mask = cells == UNREACHABLE16 if wanted == "distance" else None
    return _nested(sizes(bounds), pa.array(cells, mask=mask))


def _stored_distance(column: Column) -> pa.Array:
    matrices = [decode_distance(blob) for blob in column.to_pylist()]
    flat = [np.empty(0, np.uint16), *(matrix.reshape(-1) for matrix in matrices)]
    lost = [np.empty(0, np.bool_), *(values == np.iinfo(values.dtype).max for values in flat[1:])]
    values = pa.array(np.concatenate(flat, dtype=np.uint16), mask=np.concatenate(lost))
    return _nested(np.array([*map(len, matrices)], np.int64), values)


def _stored_depth(blobs: Column, lengths: Column) -> pa.Array:
    depths = [*map(decode_depth, blobs.to_pylist(), lengths.to_pylist())]
    values = np.concatenate([np.empty(0, np.uint16), *depths], dtype=np.uint16)
    return _lists(_offsets(np.array([*map(len, depths)], np.int64)), pa.array(values))


def _stored_ancestor(column: Column) -> pa.Array:
    matrices = [decode_ancestor(blob) for blob in column.to_pylist()]
    flat = [np.empty(0, np.bool_), *(matrix.reshape(-1) for matrix in matrices)]
    return _nested(np.array([*map(len, matrices)], np.int64), pa.array(np.concatenate(flat)))


def _vector(column: Column) -> pa.Array:
    bounds = _blob_bounds(column)
    if (odd := sizes(bounds)[sizes(bounds) % 4 > 0]).size:
        raise StoreFormatError(
            f"a blob of {odd[0]} bytes is no int32 vector, which has 4 bytes a number; for upos "
            "and deprel there are upos_tags and deprel_tags"
        )
    return _lists(bounds // 4, pa.array(binary_numbers(column, "int32")))


def _tags(name: str, names: tuple[str, ...], column: Column) -> pa.Array:
    bounds, codes = _blob_bounds(column), binary_numbers(column, "uint8")
    if len(unknown := np.flatnonzero(codes >= len(names))):
        blob = owner_of(int(unknown[0]), bounds)
        first, end = bounds[blob : blob + 2].tolist()
        raise StoreFormatError(
            f"a blob of {end - first} bytes has a {codes[first:end].max()}; the bytes of {name} "
            f"are 0 to {len(names) - 1}"
        )
    return _lists(bounds, pa.array(names, pa.string()).take(pa.array(codes)))


def _blob_bounds(column: Column) -> NDArray[np.int64]:
    """Start of each blob in all of them, in bytes, and the end. *Shape:* (N + 1,)."""
    return _offsets(np.asarray(pc.binary_length(one_array(column)), np.int64))


def _nested(lengths: NDArray[np.int64], flat: pa.Array) -> pa.Array:
    return _lists(_offsets(lengths), _lists(_offsets(np.repeat(lengths, lengths)), flat))


def _lists(offsets: Sequence[int] | NDArray[np.int64], values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)])


_HEADS: Final = ("INTEGER[]",)
_DISTANCE: Final = "USMALLINT[][]"
_DEPTH: Final = "USMALLINT[]"
_ANCESTOR: Final = "BOOLEAN[][]"
_TAGS: Final = "VARCHAR[]"


def _over(prefix: str, trees: Trees, names: tuple[str, str, str]) -> tuple[SqlFunction, ...]:
    distance, depth, ancestor = (prefix.format(name) for name in names)
    return (
        SqlFunction(distance, _HEADS, _DISTANCE, partial(_squares, "distance", trees)),
        SqlFunction(depth, _HEADS, _DEPTH, partial(_depths, trees)),
        SqlFunction(ancestor, _HEADS, _ANCESTOR, partial(_squares, "ancestor", trees)),
    )


FUNCTIONS: Final = (
    *_over("{}", _sentences, ("distance_matrix", "depth_vector", "ancestor_matrix")),
    *_over("piece_{}", _segments, ("distance", "depth", "ancestor")),
    SqlFunction("stored_distance", ("BLOB",), _DISTANCE, _stored_distance),
    SqlFunction("stored_depth", ("BLOB", "INTEGER"), _DEPTH, _stored_depth),
    SqlFunction("stored_ancestor", ("BLOB",), _ANCESTOR, _stored_ancestor),
    SqlFunction("vector", ("BLOB",), "INTEGER[]", _vector),
    SqlFunction("upos_tags", ("BLOB",), _TAGS, partial(_tags, "upos", UPOS)),
    SqlFunction("deprel_tags", ("BLOB",), _TAGS, partial(_tags, "deprel", DEPREL)),
)
