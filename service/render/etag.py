"""Entity tags, by which a caller need not get again what it has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import version
from typing import Any, Final

from starlette.responses import Response

from syntax import fingerprint

_LAYOUT: Final = 2
"""Raised when an answer changes its form within one release."""

CACHE_CONTROL: Final = "private, no-cache"
"""A cache may keep the answer for its one caller, and asks before it uses it again."""


def entity_tag(content: Mapping[str, Any]) -> str:
    """A weak entity tag of everything that determines an answer.

    Weak, for two answers with one tag say the same and are not always the same bytes: ``cached``
    tells how the answer came about, and the encoding is chosen for each caller.
    """
    return f'W/"{fingerprint({"version": _version(), "layout": _LAYOUT, **content})}"'


def is_current(if_none_match: str, tag: str) -> bool:
    """True if a caller's ``If-None-Match`` names a tag; weak and strong forms are equal here.

    >>> is_current('"x", W/"abc"', 'W/"abc"'), is_current("*", 'W/"abc"'), is_current("", '""')
    (True, True, False)
    """
    held = [part.strip() for part in if_none_match.split(",")]
    return "*" in held or tag.removeprefix("W/") in [part.removeprefix("W/") for part in held]


def not_modified(if_none_match: str, headers: Mapping[str, str]) -> Response | None:
    """The answer to a caller that has it already; ``None`` if the caller does not."""
    if not is_current(if_none_match, headers["ETag"]):
        return None
    return Response(status_code=304, headers=headers)


@lru_cache(maxsize=1)
def _version() -> str:
    return version("parsebank")
