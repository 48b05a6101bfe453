"""Entity tags of answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import version
from typing import Any, Final

from starlette.responses import Response

from syntax import fingerprint

# To be raised whenever an answer changes its form.
_LAYOUT: Final = 2

CACHE_CONTROL: Final = "private, no-cache"
"""A cache may keep the answer for its one caller, and asks before it uses it again."""


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
