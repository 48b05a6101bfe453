"""The format of an answer, from the request's headers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Final, Literal, get_args

from starlette.exceptions import HTTPException

Format = Literal["json", "conllu", "ndjson", "arrow"]

MEDIA_TYPES: Final[dict[Format, str]] = {
    "json": "application/json",
    "conllu": "text/x-conllu",
    "ndjson": "application/x-ndjson",
    "arrow": "application/vnd.apache.arrow.stream",
}
"""Media types by format; the first is answered of several that a caller likes equally."""

CONTENT_TYPES: Final = {**MEDIA_TYPES, "conllu": "text/x-conllu; charset=utf-8"}

FORMATS: Final[tuple[Format, ...]] = get_args(Format)


@lru_cache(maxsize=64)
def negotiate(
    accept: str, asked: Format | None = None, offered: Sequence[Format] = FORMATS
) -> Format:
    """The format to answer in, of those offered, the preferred one first.

    ``asked`` overrides the header ``Accept``. A header that admits none is a 406.

    >>> negotiate("text/html, application/*;q=0.5, text/x-conllu;q=0.9")
    'conllu'
    >>> negotiate("*/*")
    'json'
    """
    if asked is not None:
        return asked
    ranges = list(_ranges(accept)) or [("*/*", 1.0)]
    rated = [(_rating(MEDIA_TYPES[name], ranges), name) for name in offered]
    # The first of equals, so the server's order decides what the caller leaves open.
    (quality, _), best = max(rated, key=lambda pair: pair[0])
    if quality > 0:
        return best
    known = ", ".join(MEDIA_TYPES[name] for name in offered)
    raise HTTPException(
        HTTPStatus.NOT_ACCEPTABLE,
        f"Accept says {accept!r}; the answer can be {known}. Accept one of these, or */*",
    )


def _ranges(header: str) -> Iterator[tuple[str, float]]:
    """Names with qualities; a name whose quality cannot be read is left out."""
    for part in header.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = _quality(parameters)
        if name and quality is not None:
            yield name, quality


def _quality(parameters: Sequence[str]) -> float | None:
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            try:
                quality = float(value)
            except ValueError:
                return None
            return quality if 0 <= quality <= 1 else None
    return 1.0


def _rating(media_type: str, ranges: Sequence[tuple[str, float]]) -> tuple[float, int]:
    """Quality of a type, and its closeness: the closest range decides."""
    patterns = ("*/*", f"{media_type.partition('/')[0]}/*", media_type)
    matching = [(patterns.index(name), quality) for name, quality in ranges if name in patterns]
    closeness, quality = max(matching, default=(0, 0.0))
    return quality, closeness
