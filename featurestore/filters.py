"""Which examples of a dataset are wanted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from featurestore.encode.columns import list_parts
from featurestore.files import FileReader
from featurestore.rows import RowIndex
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from syntax.matrices.offsets import sizes
from syntax.registry import unknown_name

Wanted = Mapping[str, Collection[str | float | None]]
"""For each label column, its wanted values; ``None`` stands for "no label".

Of tags and spans, an example is wanted if it has any of these names among its own.
"""


def in_langs(rows: RowIndex, langs: Collection[str]) -> NDArray[np.bool_]:
    """Which examples are in one of the languages. *Shape:* (N,)."""
    wanted = [index for index, (_, lang) in enumerate(rows.parts) if lang in langs]
    return np.isin(rows.part, wanted)


def of_length(rows: RowIndex, shortest: int, longest: int | None) -> NDArray[np.bool_]:
    """Which examples have so many stored pieces, special tokens not counted. *Shape:* (N,).

    Raises:
        SpecError: The bounds exclude every length.
    """
    if longest is not None and longest < shortest:
        raise SpecError(f"no example has at least {shortest} and at most {longest} pieces")
    long_enough = rows.pieces >= shortest
    return long_enough if longest is None else long_enough & (rows.pieces <= longest)


def with_labels(
    rows: RowIndex, reader: FileReader, labels: tuple[LabelSpec, ...], wanted: Wanted
) -> NDArray[np.bool_]:
    """Which examples have wanted values in every column named. *Shape:* (N,).

    Raises:
        UnknownNameError: No such label column, or a class has no such name.
        StoreError: A file cannot be read.
    """
    for name, values in wanted.items():
        _check(name, values, {label.name: label for label in labels})
    chosen = np.ones(len(rows), np.bool_)
    for file in np.unique(rows.file):
        here = rows.file == file
        table = reader.columns(rows.paths[file], list(wanted))
        for name, values in wanted.items():
            chosen[here] &= _is_in(table[name], values)[rows.row[here]]
    return chosen


def _check(name: str, values: Collection[Any], labels: dict[str, LabelSpec]) -> None:
    if name not in labels:
        raise unknown_name("label", name, list(labels))
    for value in values:
        if labels[name].names and value not in (None, *labels[name].names):
            raise unknown_name(f"class of label {name}", str(value), labels[name].names)


def _is_in(column: pa.ChunkedArray, values: Collection[Any]) -> NDArray[np.bool_]:
    if pa.types.is_list(column.type):
        return _has_any(column, values)
    # Without skip_nulls=False a null would be in no set, not even one that holds null.
    among = pc.is_in(column, value_set=pa.array(list(values), column.type), skip_nulls=False)
    return np.asarray(among.combine_chunks()).astype(np.bool_)


def _has_any(column: pa.ChunkedArray, values: Collection[Any]) -> NDArray[np.bool_]:
    """Which rows have one of the names in their list; those without any have ``None``."""
    bounds, items = list_parts(column)
    names = items.field("label") if pa.types.is_struct(items.type) else items
    wanted = pa.array([value for value in values if value is not None], pa.string())
    found = np.flatnonzero(np.asarray(pc.is_in(names, value_set=wanted)))
    chosen = (sizes(bounds) == 0) & (None in values)
    chosen[np.searchsorted(bounds, found, side="right") - 1] = True
    return np.asarray(chosen)
