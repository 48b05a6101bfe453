"""Lines of a file.

Only LF ends a line, so U+2028 or a form feed stays inside its sentence. A CR before the LF and a
byte order mark before the first line are removed.
"""

from __future__ import annotations

import codecs
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Final, NamedTuple

from clients.files import open_file
from syntax.errors import ExampleError, InputError, InvalidCharacterError, TextTooLongError

MOST_LINES: Final = 100_000
"""Longer blocks are split, so that a wrong file cannot fill the memory."""

MOST_BYTES: Final = 16 * 2**20

_STEP: Final = 64 * 1024


class Line(NamedTuple):
    """Line of a file, as bytes, so that a bad line affects no other; numbers count from 1."""

    path: Path
    number: int
    raw: bytes

    @property
    def where(self) -> str:
        return f"{self.path.name}, line {self.number}"

    def text(self, encoding: str = "utf-8") -> str:
        try:
            return self.raw.decode(encoding)
        except UnicodeDecodeError as error:
            raise InvalidCharacterError(
                f"{self.where}: byte {self.raw[error.start]:#04x} at position {error.start} "
                f"is not {encoding.upper()}; repair or convert the line",
                path=str(self.path),
                line=self.number,
                position=error.start,
            ) from None

    def first_field(self) -> str:
        own = self.raw.partition(b"\t")[0].decode("utf-8", "backslashreplace")
        return own or f"line-{self.number}"

    def fields(self, columns: Sequence[str]) -> list[str]:
        """Split at TABs; quotation marks are text, not CSV."""
        values = self.text().split("\t")
        if len(values) != len(columns):
            raise ExampleError(
                f"{self.where} has {len(values)} fields; "
                f"expected {len(columns)} separated by TAB: {', '.join(columns)}"
            )
        return values


def numbered_lines(path: Path) -> Iterator[Line]:
    with open_file(path) as file:
        for number, raw in enumerate(file, 1):
            if number == 1:
                _refuse_cr(raw, path)
            line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
            yield Line(path, number, line.removesuffix(b"\n").removesuffix(b"\r"))


def _refuse_cr(first: bytes, path: Path) -> None:
    if b"\r" in first[:-1] and not first.endswith(b"\n"):
        raise InputError(
            f"{path} ends its lines with CR alone; convert them to LF first", path=str(path)
        )


def any_line(path: Path, has: Callable[[bytes], object]) -> bool:
    return any(has(line.raw) for line in numbered_lines(path))


def blocks(
    path: Path, blank: Callable[[bytes], object] = operator.not_
) -> Iterator[tuple[int, list[bytes]]]:
    """Blocks between blank (by default, empty) lines, with the number of the first line."""
    lines: list[bytes] = []
    for _, number, raw in numbered_lines(path):
        between = blank(raw)
        if lines and (between or len(lines) == MOST_LINES):
            yield number - len(lines), lines
            lines = []
        if not between:
            lines.append(raw)
    if lines:
        yield number + 1 - len(lines), lines


def whole_text(file: IO[bytes], name: str) -> str:
    raw = bytearray()  # in steps: `read` would set aside all that is allowed
    while len(raw) <= MOST_BYTES and (chunk := file.read(_STEP)):
        raw += chunk
    if len(raw) > MOST_BYTES:
        raise TextTooLongError(
            f"{name} has more than {MOST_BYTES:,} bytes; divide it into several documents"
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidCharacterError(
            f"{name}: byte {raw[error.start]:#04x} at position {error.start} is not UTF-8; repair "
            "or convert the file",
            position=error.start,
        ) from None


def check_characters(text: str, where: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidCharacterError(
            f"{where} has at character {error.start} a byte that is not UTF-8, or half of a "
            "surrogate pair; repair the record",
            position=error.start,
        ) from None


def encoding_of(path: Path, encodings: Sequence[str]) -> str:
    """First encoding, or the last, in which at least half of the lines beyond ASCII are valid.

    Latin-1 text is rarely valid UTF-8; a few broken lines in a UTF-8 file are rejected later.
    """
    for encoding in encodings[:-1]:
        lines = (line.raw for line in numbered_lines(path) if not line.raw.isascii())
        valid = Counter(_valid(raw, encoding) for raw in lines)
        if valid[True] >= valid[False]:
            return encoding
    return encodings[-1]


def _valid(raw: bytes, encoding: str) -> bool:
    try:
        raw.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
