"""Masks of the examples of a dataset that are wanted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from featurestore.tables.encode.columns import are_there, list_parts
from featurestore.tables.files import FileReader
from featurestore.tables.rows import RowIndex
from syntax.errors import SpecError, UnknownDatasetError
from syntax.examples import LabelSpec
from syntax.matrices.offsets import sizes
from syntax.options import check_range, checked
from syntax.registry import unknown_name

Wanted = Mapping[str, Collection[str | float | None]]
"""For each label column, its wanted values, of tags and spans any; ``None`` means no label."""


def in_langs(rows: RowIndex, langs: Collection[str]) -> NDArray[np.bool_]:
    """Mask of the examples in one of the languages. *Shape:* (N,)."""
    wanted = checked("langs", tuple[str, ...], langs)
    known = {rows.parts[part][1] for part in np.unique(rows.part)}
    for lang in wanted:
        if lang not in known:
            raise unknown_name("language of the examples", lang, known, UnknownDatasetError)
    chosen = [index for index, (_, lang) in enumerate(rows.parts) if lang in wanted]
    return np.isin(rows.part, chosen)


def of_length(rows: RowIndex, shortest: int, longest: int | None) -> NDArray[np.bool_]:
    """Mask of the examples with a number of stored pieces within bounds. *Shape:* (N,)."""
    shortest = checked("shortest", int, shortest)
    longest = checked("longest", int | None, longest)
    if longest is not None and longest < shortest:
        raise SpecError(f"no example has at least {shortest} and at most {longest} pieces")
    long_enough = rows.pieces >= shortest
    return long_enough if longest is None else long_enough & (rows.pieces <= longest)


def with_labels(
    rows: RowIndex, reader: FileReader, labels: tuple[LabelSpec, ...], wanted: Wanted
) -> NDArray[np.bool_]:
    """Mask of the examples with wanted values in every column named. *Shape:* (N,)."""
    if not isinstance(wanted, Mapping):
        raise SpecError(f"labels is {wanted!r}; it must be a mapping of columns to lists of values")
    known = {label.name: label for label in labels}
    accepted = {name: _values(name, values, known) for name, values in wanted.items()}
    chosen = np.ones(len(rows), np.bool_)
    for file in np.unique(rows.file):
        here = rows.file == file
        table = reader.columns(rows.paths[file], list(accepted))
        for name, values in accepted.items():
            chosen[here] &= _is_in(table[name], values)[rows.row[here]]
    return chosen


def with_any_label(
    rows: RowIndex, reader: FileReader, labels: tuple[LabelSpec, ...], names: Collection[str]
) -> NDArray[np.bool_]:
    """Mask of the examples with a label, be it an empty list, in every column. *Shape:* (N,)."""
    known = [label.name for label in labels]
    if unknown := [name for name in names if name not in known]:
        raise unknown_name("label", unknown[0], known)
    chosen = np.ones(len(rows), np.bool_)
    for file in np.unique(rows.file):
        here = rows.file == file
        table = reader.columns(rows.paths[file], list(names))
        for name in names:
            chosen[here] &= are_there(table[name])[rows.row[here]]
    return chosen


def within_limit(rows: RowIndex, chosen: NDArray[np.bool_], limit: int) -> NDArray[np.bool_]:
    """Mask of the first examples of each language by their keys, of those chosen. *Shape:* (N,)."""
    check_range("limit", checked("limit", int, limit), 1)
    kept = np.zeros(len(rows), np.bool_)
    langs = np.array([lang for _, lang in rows.parts])
    for lang in np.unique(langs):
        members = np.flatnonzero(chosen & (langs == lang)[rows.part])
        high, low = rows.keys[members].T
        kept[members[np.lexsort((low, high))[:limit]]] = True
    return kept


def _values(name: str, values: Any, labels: dict[str, LabelSpec]) -> tuple[Any, ...]:
    if name not in labels:
        raise unknown_name("label", name, list(labels))
    label = labels[name]
    wanted: tuple[Any, ...] = checked(f"labels[{name!r}]", tuple[object, ...], values)
    for value in wanted:
        if value is not None:
            _check_type(label, value)
        if label.names and value not in (None, *label.names):
            raise unknown_name(f"class of label {name}", str(value), label.names)
    return wanted


def _check_type(label: LabelSpec, value: Any) -> None:
    wanted, known = (Real, "a number") if label.kind == "float" else (str, "a text")
    if not isinstance(value, wanted):
        raise SpecError(
            f"one of labels[{label.name!r}] is {value!r}; a label of kind {label.kind!r} is "
            f"{known}, or None for none"
        )


def _is_in(column: pa.ChunkedArray, values: Collection[Any]) -> NDArray[np.bool_]:
    if pa.types.is_list(column.type):
        # A row without any name has the value ``None``.
        bounds, parts = list_parts(column)
        labels = parts.field("label") if pa.types.is_struct(parts.type) else parts
        wanted = pa.array([value for value in values if value is not None], pa.string())
        found = np.flatnonzero(np.asarray(pc.is_in(labels, value_set=wanted)))
        chosen = (sizes(bounds) == 0) & (None in values)
        chosen[np.searchsorted(bounds, found, side="right") - 1] = True
        return np.asarray(chosen)
    # Without skip_nulls=False a null would be in no set, not even one that holds null.
    among = pc.is_in(column, value_set=pa.array(list(values), column.type), skip_nulls=False)
    return np.asarray(among.combine_chunks()).astype(np.bool_)
