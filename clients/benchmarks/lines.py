"""Lines of a file as the readers count them.

Only LF ends a line (so U+2028 or a form feed inside a sentence stays inside it); one CR before it
and a byte order mark before the first line belong to the file, not to the text.
"""

from __future__ import annotations

import codecs
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from clients.files import open_file
from syntax.errors import ExampleError, InputError, InvalidCharacterError

MOST_LINES: Final = 100_000
"""Lines of a block: what is longer is cut, lest a file of another kind fill the memory."""


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line with its 1-based number, undecoded, so that one bad line spoils no other.

    Raises:
        InputError: As `open_file`; or its lines end with CR alone.
    """
    with open_file(path) as file:
        for number, raw in enumerate(file, 1):
            if number == 1:
                _refuse_cr(raw, path)
            line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
            yield number, line.removesuffix(b"\n").removesuffix(b"\r")


def _refuse_cr(first: bytes, path: Path) -> None:
    """Refuse the one line of a file without LF that has CR inside."""
    if b"\r" in first[:-1] and not first.endswith(b"\n"):
        raise InputError(
            f"{path} ends its lines with CR alone; convert them to LF first", path=str(path)
        )


def any_line(path: Path, has: Callable[[bytes], object]) -> bool:
    """Whether a line, such as one with a label, exists; reading stops at the first."""
    return any(has(raw) for _, raw in numbered_lines(path))


def blocks(
    path: Path, blank: Callable[[bytes], object] = operator.not_
) -> Iterator[tuple[int, list[bytes]]]:
    """Lines between blank lines, with the number of the first; the last block may lack its own.

    Args:
        path: The file.
        blank: Whether a line is blank: by default, whether it is empty.
    """
    lines: list[bytes] = []
    for number, raw in numbered_lines(path):
        between = blank(raw)
        if lines and (between or len(lines) == MOST_LINES):
            yield number - len(lines), lines
            lines = []
        if not between:
            lines.append(raw)
    if lines:
        yield number + 1 - len(lines), lines


def decoded(raw: bytes, path: Path, number: int, encoding: str = "utf-8") -> str:
    """The text of one line.

    Raises:
        InvalidCharacterError: The bytes are not in the encoding, which is UTF-8 unless the reader
            states another; ``detail`` has path, line and position.
    """
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidCharacterError(
            f"{path.name}, line {number}: byte {raw[error.start]:#04x} at position {error.start} "
            f"is not {encoding.upper()}; repair or convert the line",
            path=str(path),
            line=number,
            position=error.start,
        ) from None


def check_characters(text: str, where: str) -> None:
    """Refuse what no UTF-8 file can hold.

    Raises:
        InvalidCharacterError: There is a lone surrogate: a byte that was not UTF-8, or an escape.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidCharacterError(
            f"{where} has at character {error.start} a byte that is not UTF-8, or half of a "
            "surrogate pair; repair the record",
            position=error.start,
        ) from None


def encoding_of(path: Path, encodings: Sequence[str]) -> str:
    """The first encoding in which at least half of the lines beyond ASCII are valid.

    Copies of old benchmarks circulate in their first encoding and in UTF-8. Text in Latin-1 is
    hardly ever valid UTF-8, so the lines tell; a few broken lines of a file in UTF-8 (which are
    then rejected) do not turn it into Latin-1. The last encoding is taken on trust.
    """
    for encoding in encodings[:-1]:
        lines = (raw for _, raw in numbered_lines(path) if not raw.isascii())
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


def tsv_fields(line: str, columns: Sequence[str], where: str) -> list[str]:
    """The fields of a line; quotation marks are text, not CSV.

    Args:
        line: The line.
        columns: What the fields are, in order, for the message.
        where: File and line, for the message.

    Raises:
        ExampleError: There are more or fewer fields than columns.
    """
    values = line.split("\t")
    if len(values) != len(columns):
        raise ExampleError(
            f"{where} has {len(values)} fields; "
            f"expected {len(columns)} separated by TAB: {', '.join(columns)}"
        )
    return values
