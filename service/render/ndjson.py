"""Answers as NDJSON: a head line, a line per text, and a last line.

The last line is ``{"done": ...}``, or ``{"error": ...}`` if the request as a whole failed after the
first line was sent. An answer without either is truncated.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from service.errors import error_body, named_error, unexpected_body
from service.logs import get_logger
from service.pipeline.pipeline import FeaturePipeline
from service.pipeline.plan import Plan
from service.pipeline.records import FeatureAnswer
from service.render.json import dump, item_content, makers
from syntax.errors import ParsebankError

_log = get_logger(__name__)


def render_ndjson(answer: FeatureAnswer) -> bytes:
    lines, failed = _item_lines(range(len(answer.items)), answer)
    return _head_line(answer) + lines + done_line(len(answer.items), failed)


async def stream_ndjson(pipeline: FeaturePipeline, plan: Plan) -> AsyncGenerator[bytes]:
    """Stream lines; errors before the first ones are raised, later ones are in the last line."""
    head, failed = _head_line(plan), 0
    try:
        async with aclosing(pipeline.stream(plan, _item_lines)) as groups:
            async for lines, failures in groups:
                failed += failures
                yield head + lines
                head = b""
        end = done_line(len(plan.keys), failed)
    except Exception as error:
        if head:
            raise
        end = _error_line(error)
    yield head + end


def _head_line(made_by: Plan | FeatureAnswer) -> bytes:
    return _line(makers(made_by.parser, made_by.tokenizer))


def _item_lines(places: Sequence[int], answer: FeatureAnswer) -> tuple[bytes, int]:
    numbered = zip(places, answer.items, strict=True)
    lines = [_line({"index": index, **item_content(item)}) for index, item in numbered]
    return b"".join(lines), sum(isinstance(item, ParsebankError) for item in answer.items)


def done_line(items: int, failed: int) -> bytes:
    return _line({"done": {"items": items, "failed": failed}})


def _error_line(error: Exception) -> bytes:
    named = named_error(error)
    if named is not None:
        body = error_body(named)
    else:
        _log.error("a stream failed", exc_info=error)
        body = unexpected_body(error)
    return json.dumps({"error": body}, default=str).encode("ascii") + b"\n"


def _line(content: dict[str, Any]) -> bytes:
    return dump(content) + b"\n"
