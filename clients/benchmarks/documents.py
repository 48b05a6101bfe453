"""JSON documents as streams of records, and checked fields of records.

`ijson` parses while it reads: a file of 38 MB takes 12 MB of memory instead of 250, in
the same time as `json.loads` (0.3 s). The records before a syntax error are read.
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


def records_of(path: Path, place: str) -> Iterator[Any]:
    """Elements of a list in a UTF-8 JSON document, as a stream.

    The list is at ``data.item`` in ``{"data": [...]}``, at ``item`` in ``[...]``. An invalid byte
    becomes a lone surrogate, so only the text that holds it is refused (`text_of`).

    Raises:
        ExampleError: A syntax error, after the records before it; or there is no such list.
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
    with _opened(path) as file:
        try:
            return parse_json(file.read())
        except ValueError as error:
            raise ExampleError(f"{path.name} is no JSON document: {error}; repair it") from None


def parsed_object(text: str, where: str) -> dict[str, Any]:
    try:
        record = parse_json(text)
    except ValueError as error:
        raise ExampleError(f"{where} is no JSON ({error}); expected one object") from None
    return checked_object(record, where)


def checked_object(record: Any, where: str) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise ExampleError(f"{where} is a JSON {type(record).__name__}; expected an object")
    return record


def text_of(record: Any, key: str, where: str) -> str:
    value = record.get(key) if isinstance(record, dict) else None
    if not isinstance(value, str):
        raise ExampleError(f"{where}: {key!r} is {value!r}; expected a text")
    check_characters(value, f"{where}: {key!r}")
    return value


class _Bytes:
    """UTF-8 bytes in which an invalid byte becomes a JSON escape."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size).encode("utf-8", "backslashreplace")


def _opened(path: Path) -> IO[str]:
    file = open_file(path)
    return io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")


def _has_lone_surrogate(path: Path) -> bool:
    """True if there may be a lone surrogate; a pair across two chunks counts too."""
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
    """Items of a file; a named error that ends them early becomes a rejection of the file.

    Raises:
        DamagedFileError: The file is packed and damaged, so the lost items cannot be counted.
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
    """Makes ids unique by numbering repetitions; keeps all ids in memory."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def of(self, name: str) -> str:
        self._seen[name] += 1
        return name if self._seen[name] == 1 else f"{name}#{self._seen[name]}"
