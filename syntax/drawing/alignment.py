"""Wordpieces under their words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Final, NamedTuple

from syntax.drawing.svg import (
    FONT,
    SMALL,
    Picture,
    about,
    element,
    escaped,
    is_right_to_left,
    line,
    stroke,
    text,
    width_of,
)

_GAP: Final = 6.0
_PIECE_TOP: Final = 46.0
_PIECE_HEIGHT: Final = 34.0


@dataclass(frozen=True, slots=True)
class Piece:
    """A wordpiece: its characters, its id, and the place of its word (``None`` without one)."""

    form: str
    id: int
    word: int | None


class _Group(NamedTuple):
    form: str
    id: str
    pieces: list[Piece]


def draw_alignment(forms: Sequence[str], pieces: Sequence[Piece], title: str) -> Picture:
    groups = _groups(forms, pieces)
    widths = [max(width_of(form), sum(map(_width, below)) - _GAP) for form, _, below in groups]
    starts = list(accumulate((width + 3 * _GAP for width in widths), initial=2 * _GAP))
    total = starts.pop() + _GAP
    mirrored = is_right_to_left("".join(forms))
    parts = []
    for group, start, width in zip(groups, starts, widths, strict=True):
        left = total - start - width if mirrored else start
        parts.append(_draw_group(group, left, width, mirrored))
    described = "; ".join(
        f"{form or 'no word'}: {' '.join(piece.form for piece in below) or 'no wordpiece'}"
        for form, _, below in groups
    )
    height = _PIECE_TOP + _PIECE_HEIGHT + 10
    return Picture(title, described, total, height, "".join(parts))


def _groups(forms: Sequence[str], pieces: Sequence[Piece]) -> list[_Group]:
    """Each word with its pieces, in order; pieces without a word stand between under none."""
    words = [_Group(form, str(at), []) for at, form in enumerate(forms, 1)]
    groups: list[_Group] = []
    reached = 0
    for word, run in groupby(pieces, key=lambda piece: piece.word):
        if word is None or word < reached:
            groups.append(_Group("", "", list(run)))
            continue
        groups += [*words[reached:word], words[word]._replace(pieces=list(run))]
        reached = word + 1
    return [*groups, *words[reached:]]


def _draw_group(group: _Group, left: float, width: float, mirrored: bool) -> str:
    form, word, below = group
    middle = left + width / 2
    row = sum(map(_width, below)) - _GAP
    at = middle - row / 2
    parts = [text(form, middle, 10 + FONT, **about(word))] if form else []
    for piece in reversed(below) if mirrored else below:
        wide = _width(piece) - _GAP
        if form:
            ends = [(middle, 30), (at + wide / 2, _PIECE_TOP)]
            parts.append(line(ends, "muted", stroke_width=1, **about(word)))
        parts.append(_draw_piece(piece, at, wide))
        at += wide + _GAP
    return "".join(parts)


def _draw_piece(piece: Piece, left: float, wide: float) -> str:
    middle = left + wide / 2
    box = {"x": left, "y": _PIECE_TOP, "width": wide, "height": _PIECE_HEIGHT, "rx": 4}
    return element(
        "g",
        element("title", escaped(f"{piece.form}: wordpiece {piece.id}")),
        element("rect", **box, fill="none", stroke_width=1, **stroke("muted")),
        text(piece.form, middle, _PIECE_TOP + FONT, size=13),
        text(str(piece.id), middle, _PIECE_TOP + 28, colour="muted", size=SMALL),
        **about("" if piece.word is None else str(piece.word + 1)),
    )


def _width(piece: Piece) -> float:
    return max(width_of(piece.form, 13), width_of(str(piece.id), SMALL)) + 10 + _GAP
