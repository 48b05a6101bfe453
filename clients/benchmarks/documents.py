"""Benchmarks whose file is one JSON document: its records, one after the other.

The document is parsed while it is read, by `ijson`: a training file of 38 MB takes 12 MB of memory
instead of 250, in the same time as `json.loads` (0.3 s), and what stands before a break is read.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from clients.benchmarks.base import NESTED, Item, rejection
from clients.benchmarks.lines import check_characters
from clients.files import DamagedFileError, open_file
from syntax.errors import ExampleError, InputError
from syntax.strict_json import parse_json

_CHUNK: Final = 64 * 1024

_LONE_SURROGATE: Final = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F])"
)
"""The escape of one half of a surrogate pair, without the other."""


def records_of(path: Path, place: str) -> Iterator[Any]:
    """The elements of a list in a JSON document, in order; a stream.

    A byte that is not UTF-8 spoils the text that it stands in and no other: there it becomes a
    lone surrogate, which no parse accepts (see `text_of`).

    Args:
        path: The file, in UTF-8.
        place: Where the list is: ``data.item`` in ``{"data": [...]}``, ``item`` in ``[...]``.

    Raises:
        ExampleError: The document breaks off or is none, after the records before the break; or
            it has no such list.
    """
    import ijson

    # The fast parser writes "?" for a lone surrogate; the other is ten times slower and does not.
    parser = ijson.get_backend("python") if _has_lone_surrogate(path) else ijson
    read = 0
    try:
        with _opened(path) as file:
            for record in parser.items(_Bytes(file), place, use_float=True):
                read += 1
                yield record
    except (ijson.JSONError, UnicodeDecodeError) as error:
        raise ExampleError(
            f"{path.name} is no whole JSON document: {_first_line(error)} after record "
            f"{read:,}; nothing behind it could be read: fetch or repair the file"
        ) from None
    if not read:
        raise ExampleError(f"{path.name} holds no records; expected a JSON list at {place!r}")


def document_of(path: Path) -> Any:
    """A small JSON document as a whole; bad bytes are treated as in `records_of`.

    Raises:
        ExampleError: It is no JSON document.
    """
    with _opened(path) as file:
        try:
            return parse_json(file.read())
        except ValueError as error:
            raise ExampleError(f"{path.name} is no JSON document: {error}; repair it") from None


def parsed_object(text: str, where: str) -> dict[str, Any]:
    """The one record that a line holds.

    Raises:
        ExampleError: It is no JSON, or none of an object.
    """
    try:
        record = parse_json(text)
    except ValueError as error:
        raise ExampleError(f"{where} is no JSON ({error}); expected one object") from None
    return checked_object(record, where)


def checked_object(record: Any, where: str) -> dict[str, Any]:
    """A record that should be an object, as one.

    Raises:
        ExampleError: It is none.
    """
    if not isinstance(record, dict):
        raise ExampleError(f"{where} is a JSON {type(record).__name__}; expected an object")
    return record


def text_of(record: Any, key: str, where: str) -> str:
    """A text of a record.

    Args:
        record: What came; expected to be a mapping.
        key: The text's name in it.
        where: How to call the record in a message.

    Raises:
        ExampleError: There is no such text.
        InvalidCharacterError: It held a byte that is not UTF-8, or half of a surrogate pair.
    """
    value = record.get(key) if isinstance(record, dict) else None
    if not isinstance(value, str):
        raise ExampleError(f"{where}: {key!r} is {value!r}; expected a text")
    check_characters(value, f"{where}: {key!r}")
    return value


class _Bytes:
    """A text file as UTF-8 bytes; a byte that was none comes as a JSON escape."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size).encode("utf-8", "backslashreplace")


def _opened(path: Path) -> IO[str]:
    file = open_file(path)
    return io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")


def _has_lone_surrogate(path: Path) -> bool:
    """Whether there may be one; a pair on the border of two chunks counts too."""
    with _opened(path) as file:
        tail = b""
        for chunk in iter(partial(_Bytes(file).read, _CHUNK), b""):
            if _LONE_SURROGATE.search(tail + chunk):
                return True
            tail = chunk[-11:]
    return False


def _first_line(error: Exception) -> str:
    text = error.args[0] if error.args else ""
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    return text.partition("\n")[0]


def guarded(path: Path, items: Iterator[Item]) -> Iterator[Item]:
    """Items of a file; the named error that ends them early becomes a rejection of the file.

    Raises:
        DamagedFileError: The file is packed, and damaged: nobody knows what it lacks.
    """
    try:
        yield from items
    except DamagedFileError:
        raise
    except InputError as error:
        yield rejection(path.name, error)
    except RecursionError:
        yield rejection(path.name, ExampleError(f"{path.name}: {NESTED}"))


class UniqueIds:
    """Ids as a part gives them, and numbers for those that it gives again; it keeps all of them."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def of(self, name: str) -> str:
        """The id; ``q7#2`` for the second ``q7``."""
        self._seen[name] += 1
        return name if self._seen[name] == 1 else f"{name}#{self._seen[name]}"
