"""Example rows as rows of a dataset table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from featurestore.records import ExampleRow
from featurestore.tables.card import DatasetCard
from featurestore.tables.encode.blobs import many_matrix_blobs
from featurestore.tables.encode.columns import binary_column, list_column, offsets_of
from featurestore.tables.schema import LABEL_TYPES, MATRIX_BLOBS, VECTORS
from syntax.errors import InvalidCharacterError, LabelError, SpecError
from syntax.examples import LabelSpec
from syntax.labels import check_labels, is_local

if TYPE_CHECKING:
    from syntax.batches import SegmentFeatures

LARGEST_MATRIX: Final = 4_096
"""Pieces of a segment up to which matrices are stored (16 MB); a text of 200,000 characters would
take gigabytes that are never read. Its example is stored as one without matrices."""


def encode_examples(
    card: DatasetCard, split: str, lang: str, rows: Sequence[ExampleRow], matrices: bool
) -> pa.Table:
    for row in rows:
        _check(card, row)
        _check_local(card, row)
    try:
        columns = {
            "split": pa.array([split] * len(rows), pa.string()),
            "lang": pa.array([lang] * len(rows), pa.string()),
            **_plain_columns(rows),
            **_vector_columns(rows),
            **_blob_columns(rows, matrices),
            **_token_columns(rows),
            **{label.name: _label_column(label, rows) for label in card.labels},
        }
    except UnicodeEncodeError as error:
        raise InvalidCharacterError(f"an example holds text that is not Unicode: {error}") from None
    return pa.table(columns, schema=card.layout().schema)


def _check(card: DatasetCard, row: ExampleRow) -> None:
    counts = {len(row.texts), len(row.parse_keys), len(row.segments)}
    counts |= {len(row.tokens)} if row.tokens else set()
    if counts != {len(card.fields)}:
        raise SpecError(
            f"example {row.example_id!r} has {len(row.segments)} segments, {len(row.texts)} texts "
            f"and {len(row.parse_keys)} parse keys; dataset {card.name!r} has fields {card.fields}"
        )
    unknown = row.labels.keys() - {label.name for label in card.labels}
    if unknown:
        raise SpecError(
            f"example {row.example_id!r} has labels {sorted(unknown)}; "
            f"dataset {card.name!r} has {[label.name for label in card.labels]}"
        )


def _check_local(card: DatasetCard, row: ExampleRow) -> None:
    try:
        tokens = row.tokens or [np.empty((0, 2), np.int32)] * len(card.fields)
        check_labels(card.labels, card.fields, row.labels, row.texts, tokens)
    except LabelError as error:
        raise LabelError(
            f"example {row.example_id!r}: {error.message}", example_id=row.example_id
        ) from None


def _plain_columns(rows: Sequence[ExampleRow]) -> dict[str, pa.Array]:
    segments = [len(row.segments) for row in rows]
    lengths = (len(segment.input_ids) for row in rows for segment in row.segments)
    return {
        "seq": pa.array([row.seq for row in rows], pa.int64()),
        **{
            name: pa.array([getattr(row, name) for row in rows], pa.string())
            for name in ("example_id", "example_key", "parser")
        },
        **{
            name: list_column(
                segments, pa.array(chain.from_iterable(getattr(row, name) for row in rows), "str")
            )
            for name in ("texts", "parse_keys")
        },
        "segment_lengths": list_column(segments, pa.array(lengths, pa.int32())),
    }


def _vector_columns(rows: Sequence[ExampleRow]) -> dict[str, pa.Array]:
    segments = [segment for row in rows for segment in row.segments]
    starts = offsets_of(sum(len(x.input_ids) for x in row.segments) for row in rows)
    return {
        name: binary_column(starts * (2 if name == "offsets" else 1), _flat(segments, name, dtype))
        for name, dtype in VECTORS.items()
    }


def _flat(segments: Sequence[SegmentFeatures], name: str, dtype: str) -> np.ndarray[Any, Any]:
    parts = [np.asarray(getattr(segment, name)).reshape(-1) for segment in segments]
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype, copy=False)


def _blob_columns(rows: Sequence[ExampleRow], matrices: bool) -> dict[str, pa.Array]:
    kept = [
        matrices and all(len(segment.head) <= LARGEST_MATRIX for segment in row.segments)
        for row in rows
    ]
    heads = [x.head for row, keep in zip(rows, kept, strict=True) if keep for x in row.segments]
    counts = [len(row.segments) * keep for row, keep in zip(rows, kept, strict=True)]
    blobs = many_matrix_blobs(heads)
    return {
        name: list_column(
            counts,
            pa.array([blob[column] for blob in blobs], pa.binary()),
            missing=[not keep for keep in kept],
        )
        for column, name in enumerate(MATRIX_BLOBS)
    }


def _token_columns(rows: Sequence[ExampleRow]) -> dict[str, pa.Array]:
    tokens = [np.asarray(x).reshape(-1, 2) for row in rows for x in row.tokens]
    starts = offsets_of(2 * sum(map(len, row.tokens)) for row in rows)
    counts = list_column(
        [len(row.tokens) for row in rows],
        pa.array(map(len, tokens), pa.int32()),
        missing=[not row.tokens for row in rows],
    )
    flat = np.concatenate([np.empty((0, 2), np.int32), *tokens]).astype(np.int32)
    return {"token_counts": counts, "token_offsets": binary_column(starts, flat)}


def _label_column(label: LabelSpec, rows: Sequence[ExampleRow]) -> pa.Array:
    values = [row.labels.get(label.name) for row in rows]
    if is_local(label):
        return pa.array(values, LABEL_TYPES[label.kind])
    for row, value in zip(rows, values, strict=True):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        fits = number if label.kind == "float" else isinstance(value, str)
        known = label.kind != "class" or value in label.names
        if value is not None and not (fits and known):
            expected = f"one of {list(label.names)}" if label.kind == "class" else f"a {label.kind}"
            raise SpecError(
                f"example {row.example_id!r} has {label.name} {value!r}; expected {expected}",
                example_id=row.example_id,
            )
    return pa.array(values, LABEL_TYPES[label.kind])
