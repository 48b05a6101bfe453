"""Parts of all pictures: elements, colours, widths of texts, and the whole picture."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from typing import Any, Final

FONT: Final = 15.0
"""Size of words, in pixels."""

SMALL: Final = 11.0
"""Size of labels, in pixels."""

_GAP: Final = 16.0

_FONTS: Final = "system-ui, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif"
_LIGHT: Final = {
    "ink": "#1f2328",
    "muted": "#59636e",
    "accent": "#0a58ca",
    "heat": "#74a9e6",
    "paper": "#ffffff",
    "nominal": "#00707a",
    "verbal": "#b5410b",
    "modifier": "#7b3fa0",
    "function": "#6b6200",
}
_DARK: Final = {
    "ink": "#e6edf3",
    "muted": "#9aa4af",
    "accent": "#79b8ff",
    "heat": "#2f6fb5",
    "paper": "#0d1117",
    "nominal": "#4fd1c5",
    "verbal": "#ff9d66",
    "modifier": "#d2a8ff",
    "function": "#d4c84a",
}
_INVALID: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, not even escaped."""


def _style() -> str:
    """Dark colours; the light ones are attributes, for programs without style sheets."""
    rules = "".join(
        f".parsebank .{name}-fill{{fill:{colour}}}.parsebank .{name}-line{{stroke:{colour}}}"
        for name, colour in _DARK.items()
    )
    return f"<style>@media (prefers-color-scheme:dark){{{rules}}}</style>"


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing before it is written; ``description`` is its content for screen readers."""

    title: str
    description: str
    width: float
    height: float
    body: str = field(repr=False)

    def svg(self) -> str:
        size = {"width": self.width, "height": self.height}
        return element(
            "svg",
            element("title", escaped(self.title)),
            element("desc", escaped(self.description)),
            _style(),
            element("rect", **size, **fill("paper")),
            self.body,
            xmlns="http://www.w3.org/2000/svg",
            **size,
            viewBox=f"0 0 {number(self.width)} {number(self.height)}",
            role="img",
            class_="parsebank",
            font_family=_FONTS,
        )

    def _repr_svg_(self) -> str:
        return self.svg()


def stacked(title: str, pictures: Sequence[Picture]) -> Picture:
    """One picture of several, one below the other, each under its title."""
    parts = []
    top = _GAP
    for picture in pictures:
        heading = text(picture.title, 12, top + FONT, colour="muted", size=SMALL, anchor="start")
        top += FONT + _GAP
        parts += [
            heading,
            element("g", picture.body, transform=f"translate(0 {number(top)})"),
        ]
        top += picture.height + _GAP
    headings = (24 + width_of(picture.title, SMALL) for picture in pictures)
    width = max([*(picture.width for picture in pictures), *headings, 0])
    described = " ".join(picture.description for picture in pictures)
    return Picture(title, described, width, top, "".join(parts))


def element(name: str, *children: str, **attributes: str | float) -> str:
    """An element of SVG or HTML; children are escaped already, values of attributes are not.

    ``font_size`` is written ``font-size``, and ``class_`` is written ``class``.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
    )
    # An empty `<td/>` would be an open one in HTML.
    return f"<{name}{given}>{''.join(children)}</{name}>" if children else f"<{name}{given}/>"


def text(
    content: str,
    x: float,
    y: float,
    *,
    colour: str = "ink",
    size: float = FONT,
    anchor: str = "middle",
    has_halo: bool = False,
    **attributes: str | float,
) -> str:
    """A line of text; ``y`` is its baseline. A halo keeps it readable over lines."""
    given = {"x": x, "y": y, "font_size": size, "text_anchor": anchor, **fill(colour), **attributes}
    if has_halo:
        halo = stroke("paper")
        halo["class_"] += f" {given['class_']}"
        given |= {"stroke_width": 4.0, "paint_order": "stroke", **halo}
    return element("text", escaped(content), **given)


def line(points: Iterable[tuple[float, float]], colour: str, **attributes: str | float) -> str:
    path = "M" + " L".join(f"{number(x)} {number(y)}" for x, y in points)
    return element("path", d=path, fill="none", **stroke(colour), **attributes)


def fill(colour: str) -> dict[str, str]:
    return {"fill": _LIGHT[colour], "class_": f"{colour}-fill"}


def stroke(colour: str) -> dict[str, str]:
    return {"stroke": _LIGHT[colour], "class_": f"{colour}-line"}


def about(*words: str) -> dict[str, Any]:
    """The attribute ``data-word``: ids of the words that an element shows, which a page marks.

    >>> about("2", "8.1"), about("2", "2"), about("")
    ({'data_word': '2 8.1'}, {'data_word': '2'}, {})
    """
    named = " ".join(dict.fromkeys(filter(None, words)))
    return {"data_word": named} if named else {}


def escaped(content: str) -> str:
    return escape(_INVALID.sub("\ufffd", content))


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def width_of(content: str, size: float = FONT) -> float:
    """Estimated width of a text in pixels.

    Wide characters (Chinese, Japanese, Korean, emoji) are as wide as high, combining marks have
    no width, all others 0.62 of the size, which is more than most letters of common fonts have.
    """
    return size * sum(map(_share, content))


def is_right_to_left(content: str) -> bool:
    """True if the first letter with a direction is Hebrew, Arabic or the like."""
    directions = map(unicodedata.bidirectional, content)
    return next((one != "L" for one in directions if one in ("L", "R", "AL")), False)


@lru_cache(maxsize=4096)
def _share(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    return 0.0 if unicodedata.category(character) in ("Mn", "Me", "Cf") else 0.62


def _value(value: str | float) -> str:
    return escaped(value) if isinstance(value, str) else number(value)
