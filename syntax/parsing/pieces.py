"""Running text as the wordpieces that a parser reads, each with a *surface*.

Many encoders know no capitals, and none knows where a line ends: a surface tells both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.batches import SpecialTokens

SURFACES: Final = 16

NOTHING, SPACE, LINE, PARAGRAPH = range(4)
"""Kinds of white space behind a piece: the surface modulo 4 is one of them."""

INSIDE, TOKEN_END, SENTENCE_END = range(3)
"""Classes of pieces: within a token, the last one of a token, the last one of a sentence."""

_UNCASED, _LOWER, _TITLE, _UPPER = range(4)

_WRITTEN: Final = re.compile(r"\S+")
_LINE_BREAK: Final = re.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Pieces:
    """The L pieces of a text.

    Attributes:
        start, end: Characters in the text; no piece is white space alone. *Shape:* (L,), int32.
        surface: The kind of white space behind the piece (none, a space, a line break, a blank line
            or the end of the text), plus four times how it is written (without case, lower, first
            capital, other capitals). *Shape:* (L,), int32.
    """

    ids: NDArray[np.int32]
    start: NDArray[np.int32]
    end: NDArray[np.int32]
    surface: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, first: int, end: int) -> Pieces:
        part = slice(first, end)
        return Pieces(self.ids[part], self.start[part], self.end[part], self.surface[part])

    def within(self, starts: ArrayLike, ends: ArrayLike) -> NDArray[np.int64]:
        """First and last piece of each span (start, end), else the next one. *Shape:* (n, 2)."""
        first = np.searchsorted(self.end, starts, "right")
        last = np.searchsorted(self.start, ends, "left") - 1
        first = np.minimum(first, len(self) - 1)
        return np.stack([first, np.maximum(first, last)], axis=1)


def text_pieces(text: str, tokenizer: Any, unknown: int) -> Pieces:
    """Tokenize a text with a ``tokenizers.Tokenizer`` without truncation and padding.

    Characters that the tokenizer drops, such as those without width, are a piece of id ``unknown``,
    so that the pieces cover all but white space.
    """
    ids: list[int] = []
    spans: list[tuple[int, int]] = []
    at = 0

    def add_dropped(until: int) -> None:
        for dropped in _WRITTEN.finditer(text, at, until):
            ids.append(unknown)
            spans.append(dropped.span())

    encoding = tokenizer.encode(text, add_special_tokens=False)
    for piece, (first, last) in zip(encoding.ids, encoding.offsets, strict=True):
        start, end = _stripped(text, max(first, at), last)
        if start < end:
            if start > at and not text[at:start].isspace():
                add_dropped(start)
            ids.append(piece)
            spans.append((start, end))
            at = end
    add_dropped(len(text))
    behind = [text[end:start] for (_, end), (start, _) in pairwise(spans)]
    surface = [
        _white_space(between) + 4 * _case(text[start:end])
        for (start, end), between in zip_longest(spans, behind)
    ]
    starts, ends = np.array(spans, np.int32).reshape(-1, 2).T.copy()
    return Pieces(np.array(ids, np.int32), starts, ends, np.array(surface, np.int32))


def unknown_id(special: SpecialTokens) -> int:
    """Id of the unknown piece; tokenizers that know every byte have none, and pad instead."""
    return special.pad_id if special.unk_id is None else special.unk_id


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _white_space(between: str | None) -> int:
    if between is None:
        return PARAGRAPH
    if not between:
        return NOTHING
    if between == " ":
        return SPACE
    lines = len(_LINE_BREAK.findall(between))
    return SPACE if not lines else LINE if lines == 1 else PARAGRAPH


def _case(written: str) -> int:
    if written.islower():
        return _LOWER
    if written.upper() == written.lower():
        return _UNCASED
    return _TITLE if written[0].isupper() and not any(map(str.isupper, written[1:])) else _UPPER
