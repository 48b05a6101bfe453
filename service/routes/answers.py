"""Parts of the answers of several routes: errors, entity tags, and a header about the store."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import version
from typing import Any, Final

from starlette.responses import Response

from service.pipeline.pipeline import FeaturePipeline
from service.schemas import ErrorBody
from syntax import fingerprint

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


# To be raised whenever an answer changes its form.
_LAYOUT: Final = 2

CACHE_CONTROL: Final = "private, no-cache"
"""A cache may keep the answer for its one caller, and asks before it uses it again."""


def kept_headers(pipeline: FeaturePipeline, store: bool) -> dict[str, str]:
    reason = pipeline.not_kept if store else None
    return {} if reason is None else {NOT_KEPT: reason}


def error_answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorBody, "description": _MEANING[status]} for status in statuses}


def entity_tag(content: Mapping[str, Any]) -> str:
    """Weak tag, because ``cached`` and the encoding may differ between answers with one tag."""
    return f'W/"{fingerprint({"version": _version(), "layout": _LAYOUT, **content})}"'


def is_current(if_none_match: str, tag: str) -> bool:
    """True if ``If-None-Match`` names a tag; weak and strong forms are equal here.

    >>> is_current('"x", W/"abc"', 'W/"abc"'), is_current("*", 'W/"abc"'), is_current("", '""')
    (True, True, False)
    """
    held = [part.strip() for part in if_none_match.split(",")]
    return "*" in held or tag.removeprefix("W/") in [part.removeprefix("W/") for part in held]


def not_modified(if_none_match: str, headers: Mapping[str, str]) -> Response | None:
    """Answer 304, or ``None`` if the caller does not have the answer."""
    if not is_current(if_none_match, headers["ETag"]):
        return None
    return Response(status_code=304, headers=headers)


@lru_cache(maxsize=1)
def _version() -> str:
    return version("parsebank")
