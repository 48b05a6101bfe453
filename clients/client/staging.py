"""The body of a backfill: NDJSON with the specification, then one example or rejection a line."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import asdict
from typing import Any, TypedDict, Unpack

from syntax.examples import (
    DatasetSpec,
    Example,
    LabelValue,
    LongSentences,
    Rejection,
    SpanLabel,
)

_CHUNK_BYTES = 64 * 1024

_CHUNK_SECONDS = 5.0
"""Age at which an incomplete chunk is sent: the service refuses bodies that pause for 30 s."""


Sent = Example | Rejection | None
"""An item; ``None`` keeps the place of an item of another shard."""


class BackfillOptions(TypedDict, total=False):
    """Keywords of ``backfill`` and ``forecast``.

    Attributes:
        tokenizer: Name or path; the service's default when left out.
        parser: Parser name, or one for each language (``en:NAME,fr:NAME``); the service's choice
            for the language when left out.
        matrices: Store the matrices beside the vectors (default: true).
        long_sentences: ``refuse`` (default) drops examples with sentences over the service's limit;
            ``split`` splits the sentences.
        shard: ``K/N``, if N calls share the examples; see `clients.shards.Shard`.
    """

    tokenizer: str | None
    parser: str | None
    matrices: bool
    long_sentences: LongSentences | None
    shard: str | None


class Upload:
    """The chunks of a body, made while they are sent, so that memory stays bounded.

    Attributes:
        failure: The error that the examples raised. An app in the same process would answer it as
            an error of its own, so the client raises it instead.
    """

    def __init__(self, spec: dict[str, Any], examples: Iterable[Sent]) -> None:
        self.failure: Exception | None = None
        self._spec = spec
        self._examples = examples

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from _chunks(_lines(self._spec, self._examples))
        except Exception as error:
            self.failure = error
            raise

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk


def backfill_spec(
    spec: DatasetSpec,
    **options: Unpack[BackfillOptions],
) -> dict[str, Any]:
    labels = [_given(asdict(label)) for label in spec.labels]
    return asdict(spec) | {"labels": labels} | _given(dict(options))


def _given(content: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if value is not None}


def _lines(spec: dict[str, Any], examples: Iterable[Sent]) -> Iterator[bytes]:
    yield _line({"spec": spec})
    for item in examples:
        yield b"\n" if item is None else _line(_body(item))


def _body(item: Example | Rejection) -> dict[str, Any]:
    if isinstance(item, Rejection):
        return {"rejected": asdict(item)}
    segments = [
        _given({"text": segment.text, "tokens": segment.tokens, "conllu": segment.conllu})
        for segment in item.segments
    ]
    labels = {name: _label(value) for name, value in item.labels.items()}
    return {"example": {"example_id": item.example_id, "segments": segments, "labels": labels}}


def _label(value: LabelValue | None) -> Any:
    if not isinstance(value, tuple):
        return value
    return [item._asdict() if isinstance(item, SpanLabel) else item for item in value]


def _line(body: dict[str, Any]) -> bytes:
    # Escaped ASCII can carry a lone surrogate, which the service then reports.
    return json.dumps(body, separators=(",", ":")).encode("ascii") + b"\n"


def _chunks(lines: Iterable[bytes]) -> Iterator[bytes]:
    chunk = bytearray()
    sent = time.monotonic()
    for line in lines:
        chunk += line
        if len(chunk) >= _CHUNK_BYTES or time.monotonic() - sent >= _CHUNK_SECONDS:
            yield bytes(chunk)
            chunk.clear()
            sent = time.monotonic()
    if chunk:
        yield bytes(chunk)
