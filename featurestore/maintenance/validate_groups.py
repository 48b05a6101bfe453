"""Checks of whole row groups, which say only whether every row is sound.

A row by itself takes five to ten times as long. Where a group is not sound, or its bytes cannot be
read, `featurestore.maintenance.validate` goes through its rows, to say what is wrong with which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from itertools import pairwise
from typing import Any, Final, ParamSpec

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from featurestore.maintenance.validate_deep import (
    check_key,
    check_label_values,
    check_parser,
    given_label,
)
from featurestore.records import ParseRecord, key_bytes
from featurestore.store import FeatureStore
from featurestore.tables.card import DatasetCard
from featurestore.tables.encode.blobs import many_matrix_blobs
from featurestore.tables.encode.columns import binary_numbers, list_parts, one_array
from featurestore.tables.encode.parses import parse_columns, unpack_parses
from featurestore.tables.schema import MATRIX_BLOBS, VECTORS
from syntax.alignment import batch_features
from syntax.alignment.align import are_forests
from syntax.batches import SegmentFeatures
from syntax.labels import is_local

P = ParamSpec("P")

_PLAIN: Final = ("lang", "parser", "mode")
_DERIVED: Final = tuple(
    column.name
    for column in fields(SegmentFeatures)
    if column.name in VECTORS and column.name not in ("input_ids", "offsets")
)
"""Vectors of pieces that follow from ids, offsets and parse."""


def _or_false(check: Callable[P, bool]) -> Callable[P, bool]:
    """A check that is ``False`` where it fails: damaged bytes may fail anywhere."""

    @wraps(check)
    def checked(*args: P.args, **kwargs: P.kwargs) -> bool:
        try:
            return check(*args, **kwargs)
        except Exception:
            return False

    return checked


@_or_false
def parses_are_sound(rows: pa.Table, deep: bool) -> bool:
    """Whether parses are forests within their texts, and packed as their columns say.

    Args:
        rows: Rows of the table ``parses``, all columns.
        deep: Check that keys are those of the texts, too.
    """
    keys = rows["key"].to_pylist()
    key_bytes(keys)
    records = unpack_parses(keys, rows["record"])
    parses = [record.parse for record in records]
    columns = {
        name: pa.array([getattr(record, name) for record in records], pa.string())
        for name in _PLAIN
    }
    columns.update(parse_columns(parses))
    for record in records if deep else ():
        check_key(record)
    return (
        all(one_array(rows[name]).equals(column) for name, column in columns.items())
        and all(max(parse.sentence_end, default=0) <= len(parse.text) for parse in parses)
        and are_forests(parses)
    )


@_or_false
def examples_are_sound(card: DatasetCard, rows: pa.Table) -> bool:
    """Whether examples have names, vectors of their sizes, and matrices that follow from these.

    Args:
        card: The dataset's.
        rows: Rows of its table, with names, lengths, vectors and matrices.
    """
    key_bytes(rows["example_key"].to_pylist())
    lengths = _lengths(rows, len(card.fields))
    pieces = lengths.sum(axis=1)
    ids = binary_numbers(rows["input_ids"], VECTORS["input_ids"])
    return (
        all(rows["example_id"].to_pylist())
        and all(seq >= 0 for seq in rows["seq"].to_pylist())
        and all(
            np.array_equal(_bytes(rows[name]), pieces * np.dtype(dtype).itemsize * _numbers(name))
            for name, dtype in VECTORS.items()
        )
        and bool(((ids >= 0) & (ids < card.special_tokens.vocab_size)).all())
        and _matrices_are_derived(rows, lengths)
    )


def _matrices_are_derived(rows: pa.Table, lengths: NDArray[np.int64]) -> bool:
    """Whether the matrices of the examples that have any are those of their heads."""
    has_any = rows["distance"].is_valid().to_numpy()
    flat = lengths.reshape(-1)
    heads = _cut(binary_numbers(rows["head"], VECTORS["head"]), flat)
    chosen = np.repeat(has_any, lengths.shape[1]).tolist()
    derived = many_matrix_blobs([head for head, is_in in zip(heads, chosen, strict=True) if is_in])
    for at, name in enumerate(MATRIX_BLOBS):
        if not np.array_equal(rows[name].is_valid().to_numpy(), has_any):
            return False
        parts, blobs = list_parts(rows[name].drop_null())
        if (np.diff(parts) != lengths.shape[1]).any():
            return False
        if blobs.to_pylist() != [own[at] for own in derived]:
            return False
    return True


@_or_false
def features_are_sound(store: FeatureStore, card: DatasetCard, rows: pa.Table) -> bool:
    """Whether the vectors of examples are those of their parses: `validate_deep.wrong_examples`."""
    lengths = _lengths(rows, len(card.fields)).reshape(-1)
    (key_parts, keys), (text_parts, texts) = list_parts(rows["parse_keys"]), _texts(rows)
    if not np.array_equal(key_parts, text_parts) or len(keys) != len(lengths):
        return False
    asked = keys.to_pylist()
    found = store.parses.get_many(list(dict.fromkeys(asked)))
    records = [found[key] for key in asked]
    parses = [record.parse for record in records]
    if [parse.text for parse in parses] != texts.to_pylist():
        return False
    _check_parsers(store, rows["parser"].to_pylist(), records, len(card.fields))
    stored = {name: binary_numbers(rows[name], dtype) for name, dtype in VECTORS.items()}
    offsets = stored["offsets"].reshape(-1, 2)
    derived = batch_features(parses, stored["input_ids"], offsets, lengths.tolist())
    return all(
        np.array_equal(np.concatenate([getattr(own, name) for own in derived]), stored[name])
        for name in _DERIVED
    )


def _check_parsers(
    store: FeatureStore, parsers: Sequence[str], records: Sequence[ParseRecord], segments: int
) -> None:
    """Refuse a segment by another parser than its example's.

    Raises:
        StoreError: There is one.
    """
    for at, record in enumerate(records):
        check_parser(store, parsers[at // segments], at % segments, record)


@_or_false
def labels_are_sound(card: DatasetCard, rows: pa.Table) -> bool:
    """Whether tokens and labels fit their texts: `validate_deep.wrong_labels`."""
    parts, texts = _texts(rows)
    counts = _token_counts(rows, np.diff(parts))
    pairs = binary_numbers(rows["token_offsets"], "int32").reshape(-1, 2)
    of_rows = np.diff(np.append(0, np.cumsum(counts))[parts])
    if not np.array_equal(_bytes(rows["token_offsets"]), 2 * pairs.itemsize * of_rows):
        return False
    if not _are_in_order(pairs, counts, pc.utf8_length(texts).to_numpy(zero_copy_only=False)):
        return False
    for label in card.labels:
        if label.kind == "class":
            values = rows[label.name].unique().drop_null().to_pylist()
            if not set(values) <= set(label.names):
                return False
    if not any(map(is_local, card.labels)):
        return True
    tokens, written = _cut(pairs, counts), texts.to_pylist()
    values = {label.name: rows[label.name].to_pylist() for label in card.labels}
    for at, (start, end) in enumerate(pairwise(parts.tolist())):
        given = {name: given_label(column[at]) for name, column in values.items()}
        check_label_values(card, given, written[start:end], tokens[start:end])
    return True


def _token_counts(rows: pa.Table, texts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Tokens of each text, 0 where they were not recorded. *Shape:* (texts of all rows,).

    Raises:
        ValueError: A row has counts of more or fewer texts than it has.
    """
    column = one_array(rows["token_counts"])
    recorded = column.is_valid().to_numpy(zero_copy_only=False)
    parts, values = list_parts(pa.chunked_array([column.drop_null()]))
    counts = np.zeros(texts.sum(), np.int64)
    counts[np.repeat(recorded, texts)] = values.to_numpy()
    if not np.array_equal(np.diff(parts), texts[recorded]) or (counts < 0).any():
        raise ValueError("token_counts has not one number for each text")
    return counts


def _are_in_order(
    pairs: NDArray[np.int32], counts: NDArray[np.int64], lengths: NDArray[np.integer]
) -> bool:
    """Whether tokens lie within their texts, starts and ends in order.

    Args:
        pairs: Start and end of each token. *Shape:* (T, 2).
        counts: Tokens of each text. *Shape:* (texts,).
        lengths: Characters of each text. *Shape:* (texts,).
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    together = np.diff(owner) == 0
    return bool(
        (np.diff(pairs, axis=0)[together] >= 0).all()
        and (pairs[:, 0] >= 0).all()
        and (pairs[:, 0] <= pairs[:, 1]).all()
        and (pairs[:, 1] <= lengths[owner]).all()
    )


def _lengths(rows: pa.Table, segments: int) -> NDArray[np.int64]:
    """Pieces of each segment. *Shape:* (rows, segments).

    Raises:
        ValueError: A row has another number of segments, or one of less than nothing.
    """
    parts, values = list_parts(rows["segment_lengths"])
    lengths = values.to_numpy().astype(np.int64)
    if (np.diff(parts) != segments).any() or (lengths < 0).any():
        raise ValueError(f"not every row has {segments} segments")
    found: NDArray[np.int64] = lengths.reshape(rows.num_rows, segments)
    return found


def _texts(rows: pa.Table) -> tuple[NDArray[np.int64], pa.Array]:
    """Offsets and values of the column ``texts``.

    Raises:
        ValueError: A text is missing.
    """
    parts, texts = list_parts(rows["texts"])
    if texts.null_count:
        raise ValueError("a text is null")
    return parts, texts


def _bytes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Bytes of each row, 0 for null. *Shape:* (rows,)."""
    sizes: NDArray[np.int64] = pc.binary_length(column).fill_null(0).cast("int64").to_numpy()
    return sizes


def _numbers(name: str) -> int:
    """Numbers of a vector for each piece."""
    return 2 if name == "offsets" else 1


def _cut(values: NDArray[Any], lengths: NDArray[np.integer]) -> list[NDArray[Any]]:
    """Consecutive parts of these lengths."""
    ends = np.cumsum(lengths)
    if len(values) != (ends[-1] if len(ends) else 0):
        raise ValueError(f"{len(values)} numbers, where lengths say {ends[-1:]}")
    return np.split(values, ends)[:-1]
