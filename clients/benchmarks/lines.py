"""Lines of a file as the readers count them.

Only LF ends a line (so U+2028 or a form feed inside a sentence stays inside it); one CR before it
and a byte order mark before the first line belong to the file, not to the text.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from syntax.errors import InputError, InvalidCharacterError

_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each line with its 1-based number, undecoded, so that one bad line spoils no other.

    Raises:
        InputError: The file is UTF-16, in which a line cannot be found byte by byte.
    """
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if number == 1 and raw.startswith(_WIDE_MARKS):
                raise InputError(f"{path} is UTF-16; convert it to UTF-8 first", path=str(path))
            line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
            yield number, line.removesuffix(b"\n").removesuffix(b"\r")


def decoded(raw: bytes, path: Path, number: int) -> str:
    """The text of one line.

    Raises:
        InvalidCharacterError: The bytes are not UTF-8; ``detail`` has path, line and column.
    """
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidCharacterError(
            f"{path.name}, line {number}: byte {raw[error.start]:#04x} at position {error.start} "
            "is not UTF-8; repair or convert the line",
            path=str(path),
            line=number,
            position=error.start,
        ) from None
