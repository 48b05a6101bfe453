"""Label columns, and the tokens that some of them are about, as arrays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from featurestore.tables.encode.columns import (
    are_there,
    binary_numbers,
    distinct,
    list_parts,
    numpy_of,
    one_array,
)
from syntax.batches import token_ids_of
from syntax.examples import LabelSpec
from syntax.matrices.offsets import offsets_of, sizes

NO_LABEL: Final = -1

Labels = NDArray[np.int64] | NDArray[np.float32] | list[Any]


def decode_label(column: pa.ChunkedArray, label: LabelSpec) -> Labels:
    """A label column as arrays, one value per example.

    * classes: ids (int64) in the order of ``label.names``, `NO_LABEL` where there is none
    * floats: float32, NaN where there is none
    * strings: a list
    * tags: a list of arrays of class ids, int64 (tokens,), empty where an example has none
    * spans: a list of arrays int64 (N, 3): start and end character, and class id, `NO_LABEL` where
      the column has no closed list of names
    """
    array = one_array(column)
    if label.kind == "class":
        return _class_ids(array, label)
    if label.kind == "float":
        numbers = np.full(len(array), np.nan, np.float32)
        numbers[are_there(column)] = numpy_of(array.drop_null())
        return numbers
    if label.kind == "string":
        return list(array.to_pylist())
    bounds, items = list_parts(column)
    if label.kind == "tags":
        return _each(_class_ids(items, label), bounds)
    ends = (numpy_of(items.field(name)) for name in ("start_char", "end_char"))
    spans = np.stack([*ends, _class_ids(items.field("label"), label)], axis=1)
    return _each(spans.astype(np.int64), bounds)


def _class_ids(names: pa.Array, label: LabelSpec) -> NDArray[np.int64]:
    values, indices = distinct(names)
    ids = {name: number for number, name in enumerate(label.names)}
    return np.array([ids.get(value, NO_LABEL) for value in values], np.int64)[indices]


def _each(values: NDArray[np.int64], bounds: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    pairs = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    return [values[start:end] for start, end in pairs]


def decode_token_counts(table: pa.Table) -> NDArray[np.int32]:
    """Tokens of each segment; 0 also where they were not recorded. *Shape:* (S,)."""
    bounds, values = list_parts(table["token_counts"])
    segments, _ = list_parts(table["segment_lengths"])
    known = np.repeat(sizes(bounds) > 0, sizes(segments))
    counts = np.zeros(len(known), np.int32)
    counts[known] = numpy_of(values)
    return counts


def decode_token_ids(
    table: pa.Table, offsets: NDArray[np.int32], segment_offsets: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The token that each piece shows, by the characters that pieces cover (``offsets``)."""
    tokens = binary_numbers(table["token_offsets"], "int32")
    bounds = offsets_of(decode_token_counts(table))
    return token_ids_of(offsets, segment_offsets, tokens, bounds)
