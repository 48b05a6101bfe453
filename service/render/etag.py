"""Entity tags: whether what a caller has is what it would get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from hashlib import blake2b
from importlib.metadata import version
from typing import Any, Final

from service.pipeline.plan import Plan
from service.pipeline.records import FeatureRequest
from service.render.negotiate import Format
from syntax import fingerprint

_LAYOUT: Final = 2
"""Raised when the same parse comes to be rendered in another way within one release."""

_NOT_SHOWN: Final = frozenset({"items", "lang", "parser", "store", "deadline_seconds"})
"""Fields of a request that say nothing about its answer, or that the parse keys cover."""

_OPTIONS: Final = tuple(
    field.name
    for field in fields(FeatureRequest)
    if field.name not in {*_NOT_SHOWN, "token_labels"}
)


def entity_tag(content: Mapping[str, Any]) -> str:
    """A weak entity tag of everything that determines an answer.

    Weak, for two answers with one tag say the same and are not always the same bytes: ``cached``
    tells how the answer came about, and the encoding is chosen for each caller.
    """
    return f'W/"{fingerprint({"version": _version(), "layout": _LAYOUT, **content})}"'


def parse_tag(plan: Plan, shape: Format) -> str:
    """The tag of an answer in which every text has its parse."""
    request, tokenizer = plan.request, plan.tokenizer
    options = tuple(getattr(request, name) for name in _OPTIONS)
    parser = (plan.parser.name, plan.parser.fingerprint)
    made_by = _frame(shape, parser, tokenizer and tokenizer.fingerprint, options)
    labels = [] if request.token_labels is None else [fingerprint(request.token_labels)]
    content = "\n".join([made_by, *map(str, plan.keys), *labels])
    return f'W/"{blake2b(content.encode(), digest_size=16).hexdigest()}"'


@lru_cache(maxsize=64)
def _frame(
    shape: Format, parser: tuple[str, str], tokenizer: str | None, options: tuple[Any, ...]
) -> str:
    """What many answers have in common, as one fingerprint."""
    return fingerprint(
        {
            "version": _version(),
            "layout": _LAYOUT,
            "format": shape,
            "parser": parser,
            "tokenizer": tokenizer,
            "options": options,
        }
    )


def is_current(if_none_match: str, tag: str) -> bool:
    """Whether a caller's ``If-None-Match`` names a tag; weak and strong forms are equal here.

    >>> is_current('"x", W/"abc"', 'W/"abc"'), is_current("*", 'W/"abc"'), is_current("", '""')
    (True, True, False)
    """
    held = [part.strip() for part in if_none_match.split(",")]
    return "*" in held or tag.removeprefix("W/") in [part.removeprefix("W/") for part in held]


@lru_cache(maxsize=1)
def _version() -> str:
    return version("parsebank")
