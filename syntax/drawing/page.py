"""HTML around pictures: a page of its own, a part of a notebook, a small table of facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from syntax.drawing.svg import Picture, element, escaped

SHORT: Final = 12

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = ":root{color-scheme:light dark}body{font-family:system-ui,sans-serif;margin:1.5rem}"


def page(title: str, pictures: Sequence[Picture]) -> str:
    """A whole HTML document: each picture under its title, nothing loaded from elsewhere."""
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width">',
        element("title", escaped(title)),
        element("style", _STYLE),
    ]
    body = element("h1", escaped(title), dir="auto") + figures(pictures)
    content = element("html", element("head", *head), element("body", body), lang="en")
    return f"<!doctype html>\n{content}\n"


def figures(pictures: Sequence[Picture]) -> str:
    return "".join(
        element(
            "figure",
            element("figcaption", escaped(picture.title), dir="auto"),
            picture.svg(),
            style="margin:0 0 1em;overflow-x:auto",
        )
        for picture in pictures
    )


def summary(kind: str, facts: Mapping[str, object]) -> str:
    rows = (
        element("tr", element("th", escaped(name), scope="row", style=_LEFT), _cell(value))
        for name, value in facts.items()
    )
    return element("table", element("caption", escaped(kind), style=_LEFT), *rows)


def listing(kind: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table with a line for each thing, as notebooks show a batch or the datasets of a store."""
    head = "".join(element("th", escaped(name), scope="col", style=_LEFT) for name in columns)
    body = (element("tr", *map(_cell, row)) for row in rows)
    caption = element("caption", escaped(kind), style=_LEFT)
    return element("table", caption, element("tr", head), *body)


def progress(line: str, done: int, total: int) -> str:
    bar = element("progress", "", value=str(done), max=str(max(total, 1)))
    return element("div", bar, f" {escaped(line)}")


def plain(kind: str, facts: Mapping[str, object]) -> str:
    """Facts on a line, as ``repr`` shows them.

    >>> plain("FeatureStream", {"dataset": "xnli", "batches": 3})
    "<FeatureStream dataset='xnli' batches=3>"
    """
    return f"<{' '.join([kind, *(f'{name}={value!r}' for name, value in facts.items())])}>"


def short(fingerprint: str) -> str:
    return fingerprint[:SHORT]


_LEFT: Final = "text-align:left"


def _cell(value: object) -> str:
    shown = f"{value:,}" if isinstance(value, int) else str(value)
    return element("td", escaped(shown) or "-", style=_LEFT)
