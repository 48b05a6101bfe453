"""Errors of routes as the OpenAPI document shows them."""

from __future__ import annotations

from typing import Any, Final

from service.schemas import ErrorBody

_MEANING: Final = {
    404: "There is nothing of this name.",
    408: "The body paused for too long.",
    409: "The state of the thing forbids it.",
    413: "The body is larger than `max_body_bytes`.",
    422: "The request contradicts itself, or is not as it is described here.",
    501: "An optional dependency is not installed.",
    503: "The model, the store or the job database is out of order.",
    504: "Not done within the deadline.",
}


def error_answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` of a route or router that may answer these errors."""
    return {status: {"model": ErrorBody, "description": _MEANING[status]} for status in statuses}
