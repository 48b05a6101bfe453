"""Answers of ``/features`` as JSON and NDJSON; `service.render.features_arrow` has the third."""

from __future__ import annotations

from typing import Any, Final

from service.errors import error_body
from service.pipeline.assembled import (
    AlignedSegment,
    AssembledExample,
    AssemblyAnswer,
    FailedExample,
)
from service.render.json import dump
from service.render.ndjson import done_line

_OPTIONS: Final = (
    *("max_length", "policy", "joint_root", "separator_edge", "truncation"),
    *("truncation_tie", "pad_to_multiple_of", "matrices"),
)
"""The options that a request may have; the others of `AssemblySpec` are as they are by default."""


def features_json(answer: AssemblyAnswer) -> bytes:
    """One document, as `service.routes.feature_schemas.FeaturesAnswer` describes it."""
    return dump({**made_of(answer), "examples": [_content(x) for x in answer.examples]})


def features_ndjson(answer: AssemblyAnswer) -> bytes:
    """A line about what made the answer, one per example, and one that ends it."""
    failed = sum(isinstance(example, FailedExample) for example in answer.examples)
    contents = ({"index": n, **_content(x)} for n, x in enumerate(answer.examples))
    lines = b"".join(dump(line) + b"\n" for line in (made_of(answer), *contents))
    return lines + done_line(len(answer.examples), failed)


def made_of(answer: AssemblyAnswer) -> dict[str, Any]:
    """All but the examples."""
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


def facts(example: AssembledExample | FailedExample) -> dict[str, Any]:
    """What is said of an example beside its arrays or its error."""
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
        return {**facts(example), "error": error_body(example.error)}
    arrays = {name: array.tolist() for name, array in example.arrays.items()}
    return {**facts(example), **arrays}


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
    """A name as valid text: lone surrogates become U+FFFD."""
    return name and name.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
