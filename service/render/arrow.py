"""Pipeline answers as an Arrow IPC stream: a row per text, columns as in the store.

Words, tokens and sentences are the ``list<>`` columns of the table ``parses``, pieces are lists
under the names that JSON gives them, and matrices the bytes that datasets hold
(`featurestore.tables.encode.blobs`). docs/reference/http.md shows how to read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from service.pipeline.records import FeatureAnswer, ItemFeatures, Pieces
from syntax.errors import ParsebankError

if TYPE_CHECKING:
    import pyarrow as pa

ROWS: Final = 64
"""Texts in a record batch."""

_NUMBERS: Final = ("distance", "depth")


def render_arrow(answer: FeatureAnswer) -> bytes:
    """The whole answer, texts in the order asked."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    schema = _row_batch(0, []).schema.with_metadata(_metadata(answer))
    with pa.ipc.new_stream(sink, schema) as writer:
        for start in range(0, len(answer.items), ROWS):
            batch = _row_batch(start, answer.items[start : start + ROWS])
            writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    return bytes(sink.getvalue())


def _metadata(answer: FeatureAnswer) -> dict[str, str]:
    """Who made the answer, for the schema."""
    names = {
        "parser": answer.parser.name,
        "parser_fingerprint": answer.parser.fingerprint,
        "lang": answer.lang,
    }
    if answer.tokenizer is not None:
        names |= {
            "tokenizer": answer.tokenizer.name,
            "tokenizer_fingerprint": answer.tokenizer.fingerprint,
        }
    return names


def _row_batch(start: int, items: Sequence[ItemFeatures | ParsebankError]) -> pa.RecordBatch:
    """Rows of consecutive texts; a failed one has its error and nulls."""
    import pyarrow as pa

    parsed = [item for item in items if isinstance(item, ItemFeatures)]
    columns = _parsed_columns(parsed)
    # Position of each text among the parsed ones; a null takes a row of nulls.
    numbers = iter(range(len(parsed)))
    at = [next(numbers) if isinstance(item, ItemFeatures) else None for item in items]
    indices = pa.array(at, pa.int32())
    return pa.record_batch(
        {
            "index": pa.array(range(start, start + len(items)), pa.int32()),
            **{name: column.take(indices) for name, column in columns.items()},
            **_error_columns(items),
        }
    )


def _error_columns(items: Sequence[ItemFeatures | ParsebankError]) -> dict[str, pa.Array]:
    import pyarrow as pa

    errors = [item if isinstance(item, ParsebankError) else None for item in items]
    return {
        "error_type": pa.array([error and error.error_type for error in errors], pa.string()),
        "error_message": pa.array([error and error.message for error in errors], pa.string()),
    }


def _parsed_columns(items: Sequence[ItemFeatures]) -> dict[str, pa.Array]:
    import pyarrow as pa

    from featurestore.tables.encode.parses import parse_columns

    return {
        "key": pa.array([item.key for item in items], pa.string()),
        "cached": pa.array([item.cached for item in items], pa.bool_()),
        **parse_columns([item.parse for item in items]),
        **_token_columns(items),
        **_piece_columns([item.pieces for item in items]),
        **_matrix_columns(items),
    }


def _token_columns(items: Sequence[ItemFeatures]) -> dict[str, pa.Array]:
    """Words and labels of the tokens that were sent; null if there were none."""
    import pyarrow as pa

    lists = pa.list_(pa.list_(pa.int32()))
    return {
        "token_words": pa.array([item.token_words for item in items], lists),
        "word_labels": pa.array([item.word_labels for item in items], pa.list_(pa.string())),
    }


def _piece_columns(pieces: Sequence[Pieces | None]) -> dict[str, pa.Array]:
    """Lists over the pieces of each text; null without a tokenizer."""
    import pyarrow as pa

    number, pair = pa.int32(), pa.list_(pa.int32(), 2)
    return {
        "input_ids": _lists(pieces, lambda own: pa.array(own.input_ids, number), number),
        "offset_mapping": _lists(pieces, lambda own: _pairs(own.offsets), pair),
        "word_ids": _lists(pieces, lambda own: _words(own.word_ids), number),
        "parents": _lists(pieces, lambda own: pa.array(own.parents, number), number),
    }


def _lists(
    pieces: Sequence[Pieces | None], values: Callable[[Pieces], pa.Array], kind: pa.DataType
) -> pa.ListArray:
    import pyarrow as pa

    from featurestore.tables.encode.columns import list_column

    parts = [pa.array([], kind) if own is None else values(own) for own in pieces]
    return list_column(
        [len(part) for part in parts],
        pa.concat_arrays([pa.array([], kind), *parts]),
        missing=[own is None for own in pieces],
    )


def _words(word_ids: NDArray[np.int32]) -> pa.Array:
    """Null where a piece has no word, as in JSON."""
    import pyarrow as pa

    return pa.array(word_ids, pa.int32(), mask=word_ids < 0)


def _pairs(offsets: NDArray[np.int32]) -> pa.Array:
    import pyarrow as pa

    flat = pa.array(np.ascontiguousarray(offsets).reshape(-1), pa.int32())
    return pa.FixedSizeListArray.from_arrays(flat, 2)


def _matrix_columns(items: Sequence[ItemFeatures]) -> dict[str, pa.Array]:
    """The matrices packed, and the dtype of those that hold numbers; null if not asked for."""
    import pyarrow as pa

    from featurestore.tables.encode.blobs import pack_bits, pack_numbers

    columns: dict[str, pa.Array] = {}
    for name in _NUMBERS:
        matrices = [item.matrices.get(name) for item in items]
        columns[name] = pa.array(_each(matrices, pack_numbers), pa.binary())
        columns[f"{name}_dtype"] = pa.array(_each(matrices, _dtype), pa.string())
    ancestors = [item.matrices.get("ancestor") for item in items]
    columns["ancestor"] = pa.array(_each(ancestors, pack_bits), pa.binary())
    return columns


def _each(
    matrices: Sequence[NDArray[Any] | None], pack: Callable[[NDArray[Any]], Any]
) -> Iterator[Any]:
    return (None if matrix is None else pack(matrix) for matrix in matrices)


def _dtype(matrix: NDArray[Any]) -> str:
    """The dtype as a string for `numpy.dtype`, little-endian: ``|u1`` or ``<u2``."""
    return matrix.dtype.newbyteorder("<").str
