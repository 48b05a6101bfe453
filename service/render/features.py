"""Answers of ``/features`` as JSON, NDJSON and an Arrow IPC stream.

In Arrow, a tenth of JSON's size or less, matrices are packed as datasets hold them.
docs/features.md shows how to read them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from numpy.typing import NDArray

from featurestore.tables.encode.blobs import pack_bits, pack_numbers
from service.errors import error_body
from service.pipeline.assembled import (
    AlignedSegment,
    AssembledExample,
    AssemblyAnswer,
    FailedExample,
)
from service.render.arrow import dtypes, packed
from service.render.json import dump
from service.render.ndjson import done_line
from syntax.matrices import COMPILED

_OPTIONS: Final = (
    *("max_length", "policy", "joint_root", "separator_edge", "truncation"),
    *("truncation_tie", "pad_to_multiple_of", "matrices"),
)
"""Options that a request may have; the others of `AssemblySpec` have their defaults."""

_SEGMENT: Final = pa.struct(
    [
        *((name, pa.string()) for name in ("key", "lang", "parser")),
        ("cached", pa.bool_()),
        ("text", pa.string()),
        *((name, pa.int32()) for name in ("length", "kept")),
    ]
)
_FACTS: Final[dict[str, pa.DataType]] = {
    "key": pa.string(),
    "example_id": pa.string(),
    "segments": pa.list_(_SEGMENT),
    "length": pa.int32(),
    "truncated": pa.bool_(),
}
_VECTORS: Final[dict[str, pa.DataType]] = {
    **dict.fromkeys(("input_ids", "token_type_ids"), pa.list_(pa.int64())),
    **dict.fromkeys(("attention_mask", "special_tokens_mask"), pa.list_(pa.bool_())),
    **dict.fromkeys(("word_ids", "segment_ids", "sentence_ids", "parents"), pa.list_(pa.int32())),
    **dict.fromkeys(("upos", "deprel"), pa.list_(pa.uint8())),
    "offset_mapping": pa.list_(pa.list_(pa.int32(), 2)),
}


def features_json(answer: AssemblyAnswer) -> bytes:
    """One `service.routes.feature_schemas.FeaturesAnswer`."""
    return dump({**_made_of(answer), "examples": [_content(x) for x in answer.examples]})


def features_ndjson(answer: AssemblyAnswer) -> bytes:
    failed = sum(isinstance(example, FailedExample) for example in answer.examples)
    contents = ({"index": n, **_content(x)} for n, x in enumerate(answer.examples))
    lines = b"".join(dump(line) + b"\n" for line in (_made_of(answer), *contents))
    return lines + done_line(len(answer.examples), failed)


def features_arrow(answer: AssemblyAnswer) -> bytes:
    columns = {**_fact_columns(answer.examples), **_array_columns(answer)}
    metadata = {name: json.dumps(value) for name, value in _made_of(answer).items()}
    batch = pa.record_batch({**columns, **_error_columns(answer.examples)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema.with_metadata(metadata)) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _made_of(answer: AssemblyAnswer) -> dict[str, Any]:
    tokenizer = answer.tokenizer
    return {
        "tokenizer": {
            "name": tokenizer.name,
            "fingerprint": tokenizer.fingerprint,
            "special_tokens": tokenizer.special_tokens.to_json(),
        },
        "parsers": [
            {"name": name, "fingerprint": fingerprint}
            for fingerprint, name in answer.parsers.items()
        ],
        "options": {
            **{name: getattr(answer.spec, name) for name in _OPTIONS},
            "padded": answer.padded,
        },
    }


def _facts(example: AssembledExample | FailedExample) -> dict[str, Any]:
    if isinstance(example, FailedExample):
        return {"example_id": _valid(example.example_id)}
    pairs = zip(example.example.segments, example.kept, strict=True)
    return {
        "key": example.example.key,
        "example_id": _valid(example.example.example_id),
        "segments": [_segment(segment, kept) for segment, kept in pairs],
        "length": example.length,
        "truncated": example.truncated,
    }


def _content(example: AssembledExample | FailedExample) -> dict[str, Any]:
    if isinstance(example, FailedExample):
        return {**_facts(example), "error": error_body(example.error)}
    arrays = {name: array.tolist() for name, array in example.arrays.items()}
    return {**_facts(example), **arrays}


def _segment(segment: AlignedSegment, kept: int) -> dict[str, Any]:
    source = segment.source
    return {
        "key": source.key,
        "lang": source.lang,
        "parser": source.parser,
        "cached": source.cached,
        "text": source.parse.text,
        "length": len(segment.features),
        "kept": kept,
    }


def _valid(name: str | None) -> str | None:
    """Replace lone surrogates by U+FFFD."""
    return name and name.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _fact_columns(examples: Sequence[AssembledExample | FailedExample]) -> dict[str, pa.Array]:
    rows = [_facts(example) for example in examples]
    return {
        "index": pa.array(range(len(rows)), pa.int32()),
        **{name: pa.array([row.get(name) for row in rows], kind) for name, kind in _FACTS.items()},
    }


def _error_columns(examples: Sequence[AssembledExample | FailedExample]) -> dict[str, pa.Array]:
    failed = (x.error if isinstance(x, FailedExample) else None for x in examples)
    bodies = [{} if error is None else error_body(error) for error in failed]
    details = [json.dumps(body["detail"], default=str) if body else None for body in bodies]
    return {
        "error_type": pa.array([body.get("error_type") for body in bodies], pa.string()),
        "error_message": pa.array([body.get("message") for body in bodies], pa.string()),
        "error_detail": pa.array(details, pa.string()),
    }


def _array_columns(answer: AssemblyAnswer) -> dict[str, pa.Array]:
    columns = {name: _lists(_shown(answer.examples, name), kind) for name, kind in _VECTORS.items()}
    for name in _matrix_names(answer):
        matrices = _shown(answer.examples, name)
        if name == "ancestor":
            columns[name] = packed(matrices, pack_bits)
        elif name in COMPILED:
            columns[name] = packed(matrices, pack_numbers)
            columns[f"{name}_dtype"] = dtypes(matrices)
        else:
            columns[name] = _lists(matrices, _nested(matrices))
    return columns


def _matrix_names(answer: AssemblyAnswer) -> list[str]:
    """Names of `syntax.batches.assemble_batch`: those in `COMPILED` are short."""
    short = [(name, name.removesuffix(".v1")) for name in answer.spec.matrices]
    return list(dict.fromkeys(plain if plain in COMPILED else name for name, plain in short))


def _shown(
    examples: Sequence[AssembledExample | FailedExample], name: str
) -> list[NDArray[Any] | None]:
    return [x.arrays[name] if isinstance(x, AssembledExample) else None for x in examples]


def _lists(arrays: Sequence[NDArray[Any] | None], kind: pa.DataType) -> pa.Array:
    rows = (x if x is None or x.ndim == 1 else list(x) for x in arrays)
    return pa.array(rows, kind)


def _nested(arrays: Sequence[NDArray[Any] | None]) -> pa.DataType:
    first = next((array for array in arrays if array is not None), None)
    if first is None:
        return pa.null()
    kind = pa.from_numpy_dtype(first.dtype)
    for _ in range(first.ndim):
        kind = pa.list_(kind)
    return kind
