"""Pipeline answers as an Arrow IPC stream: a row per text, columns as in the store.

docs/reference/http.md shows how to read them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from featurestore.tables.encode.blobs import pack_bits, pack_numbers
from featurestore.tables.encode.columns import list_column
from featurestore.tables.encode.parses import parse_columns
from service.pipeline.records import FeatureAnswer, ItemFeatures, Pieces
from syntax.errors import ParsebankError

ROWS: Final = 64


def render_arrow(answer: FeatureAnswer) -> bytes:
    """Stream whose schema tells who made the answer."""
    made_by = {
        "parser": answer.parser.name,
        "parser_fingerprint": answer.parser.fingerprint,
        "lang": answer.lang,
    }
    if answer.tokenizer is not None:
        made_by["tokenizer"] = answer.tokenizer.name
        made_by["tokenizer_fingerprint"] = answer.tokenizer.fingerprint
    sink = pa.BufferOutputStream()
    schema = _row_batch(0, []).schema.with_metadata(made_by)
    with pa.ipc.new_stream(sink, schema) as writer:
        for start in range(0, len(answer.items), ROWS):
            batch = _row_batch(start, answer.items[start : start + ROWS])
            writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    return bytes(sink.getvalue())


def packed(
    matrices: Sequence[NDArray[Any] | None], pack: Callable[[NDArray[Any]], bytes]
) -> pa.Array:
    return pa.array([None if x is None else pack(x) for x in matrices], pa.binary())


def dtypes(matrices: Sequence[NDArray[Any] | None]) -> pa.Array:
    """Dtypes as strings for `numpy.dtype`, little-endian: ``|u1`` or ``<u2``."""
    names = [None if x is None else x.dtype.newbyteorder("<").str for x in matrices]
    return pa.array(names, pa.string())


def _row_batch(start: int, items: Sequence[ItemFeatures | ParsebankError]) -> pa.RecordBatch:
    parsed = [item for item in items if isinstance(item, ItemFeatures)]
    columns = {
        "key": pa.array([item.key for item in parsed], pa.string()),
        "cached": pa.array([item.cached for item in parsed], pa.bool_()),
        **parse_columns([item.parse for item in parsed]),
        **_token_columns(parsed),
        **_piece_columns([item.pieces for item in parsed]),
        **_matrix_columns(parsed),
    }
    # Position of each text among the parsed ones; a null takes a row of nulls.
    numbers = iter(range(len(parsed)))
    at = [next(numbers) if isinstance(item, ItemFeatures) else None for item in items]
    indices = pa.array(at, pa.int32())
    errors = [item if isinstance(item, ParsebankError) else None for item in items]
    return pa.record_batch(
        {
            "index": pa.array(range(start, start + len(items)), pa.int32()),
            **{name: column.take(indices) for name, column in columns.items()},
            "error_type": pa.array([error and error.error_type for error in errors], pa.string()),
            "error_message": pa.array([error and error.message for error in errors], pa.string()),
        }
    )


def _token_columns(items: Sequence[ItemFeatures]) -> dict[str, pa.Array]:
    lists = pa.list_(pa.list_(pa.int32()))
    return {
        "token_words": pa.array([item.token_words for item in items], lists),
        "word_labels": pa.array([item.word_labels for item in items], pa.list_(pa.string())),
    }


def _piece_columns(pieces: Sequence[Pieces | None]) -> dict[str, pa.Array]:
    number, pair = pa.int32(), pa.list_(pa.int32(), 2)
    return {
        "input_ids": _lists(pieces, lambda own: pa.array(own.input_ids, number), number),
        "offset_mapping": _lists(pieces, lambda own: _pairs(own.offsets), pair),
        # Null where a piece has no word, as in JSON.
        "word_ids": _lists(
            pieces, lambda own: pa.array(own.word_ids, number, mask=own.word_ids < 0), number
        ),
        "parents": _lists(pieces, lambda own: pa.array(own.parents, number), number),
    }


def _lists(
    pieces: Sequence[Pieces | None], values: Callable[[Pieces], pa.Array], kind: pa.DataType
) -> pa.ListArray:
    parts = [pa.array([], kind) if own is None else values(own) for own in pieces]
    return list_column(
        [len(part) for part in parts],
        pa.concat_arrays([pa.array([], kind), *parts]),
        missing=[own is None for own in pieces],
    )


def _pairs(offsets: NDArray[np.int32]) -> pa.Array:
    flat = pa.array(np.ascontiguousarray(offsets).reshape(-1), pa.int32())
    return pa.FixedSizeListArray.from_arrays(flat, 2)


def _matrix_columns(items: Sequence[ItemFeatures]) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {}
    for name in ("distance", "depth"):
        matrices = [item.matrices.get(name) for item in items]
        columns[name] = packed(matrices, pack_numbers)
        columns[f"{name}_dtype"] = dtypes(matrices)
    columns["ancestor"] = packed([item.matrices.get("ancestor") for item in items], pack_bits)
    return columns
