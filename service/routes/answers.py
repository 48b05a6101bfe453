"""Parts of the answers of several routes: errors, and a header about the store."""

from __future__ import annotations

from typing import Any, Final

from service.pipeline.pipeline import FeaturePipeline
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


NOT_KEPT: Final = "X-Not-Kept"
"""Header of an answer whose new parses were to be stored, and are not: ``read-only``, or
``store-failing`` as long as commits fail. They are tried again, and lost if the service ends.
"""


def kept_headers(pipeline: FeaturePipeline, store: bool) -> dict[str, str]:
    reason = pipeline.not_kept if store else None
    return {} if reason is None else {NOT_KEPT: reason}


def error_answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorBody, "description": _MEANING[status]} for status in statuses}
