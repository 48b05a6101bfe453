"""Error responses as the named errors that the service raised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from syntax.errors import OverloadedError, ParsebankError, RateLimitError, WorkError
from syntax.strict_json import parse_json


class ServiceUnreachableError(WorkError):
    """No service answers at the address, or the connection broke."""


def error_class(error_type: str) -> type[ParsebankError]:
    named = {cls.error_type: cls for cls in _family(ParsebankError)}
    return named.get(error_type, ParsebankError)


def named_error(body: Mapping[str, Any]) -> ParsebankError:
    error_type = str(body.get("error_type", ""))
    detail = {str(key): value for key, value in (body.get("detail") or {}).items()}
    cls = error_class(error_type)
    if cls is ParsebankError and error_type not in ("", cls.error_type):
        detail.setdefault("error_type", error_type)
    return cls(str(body.get("message", "")), **detail)


def answered_error(status: int, headers: Mapping[str, str], content: bytes) -> ParsebankError:
    """Error of a response, perhaps of a proxy."""
    body = _error_body(content)
    if body is None:
        shown = content[:200].decode("utf-8", "replace").strip()
        body = {"message": f"the server answered {status}: {shown}", "detail": {"status": status}}
    error = named_error(body)
    if status != 429:
        return error
    # A date is legal too. The service sends a number; for a date the usual back-off applies.
    try:
        wait: float | None = max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        wait = None
    detail = error.detail if wait is None else {**error.detail, "retry_after": wait}
    kind = RateLimitError if isinstance(error, RateLimitError) else OverloadedError
    return kind(error.message, **detail)


def _family(cls: type[ParsebankError]) -> Iterator[type[ParsebankError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _family(child)


def _error_body(content: bytes) -> Mapping[str, Any] | None:
    try:
        body = parse_json(content)
    except ValueError:
        return None
    inner = body.get("error", body) if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) and "message" in inner else None
