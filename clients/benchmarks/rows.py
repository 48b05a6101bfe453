"""Files of rows with named columns: JSON lines, CSV, TSV, and what the library `datasets` saves."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from clients.benchmarks.documents import checked_object, parsed_object, records_of
from clients.benchmarks.hf import arrow_file, class_names, parquet_file, rows_in
from clients.benchmarks.lines import (
    START_BYTES,
    decoded,
    numbered_lines,
    refuse_other,
    tsv_fields,
)
from syntax.errors import ExampleError, InputError

Row = Mapping[str, Any]
MakeRow = Callable[[], Row]
"""A row, or the named error that its line deserves."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a file.

    Attributes:
        rows: Each row, in order; a stream.
        names: Names of the classes that a column's numbers stand for, where the file has them.
    """

    rows: Iterator[MakeRow]
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def open_rows(path: Path) -> Rows:
    """The rows of a file, by its ending (`ENDINGS`).

    Raises:
        InputError: No such ending, or the file is damaged (perhaps after some rows).
        MissingExtraError: The file needs the library `datasets`.
    """
    opener = _OPENERS.get(path.suffix)
    if opener is None:
        raise InputError(
            f"{path.name} is no table of a known kind; expected one of {', '.join(ENDINGS)}",
            path=str(path),
        )
    return opener(path)


def _json(path: Path) -> Rows:
    """A list of objects, or an object on each line, as the first character tells."""
    with path.open("rb") as file:
        is_list = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    return Rows(_listed(path) if is_list else _json_lines(path))


def _listed(path: Path) -> Iterator[MakeRow]:
    for number, record in enumerate(records_of(path, "item"), 1):
        yield partial(checked_object, record, f"{path.name}, record {number}")


def _json_lines(path: Path) -> Iterator[MakeRow]:
    for number, raw in numbered_lines(path):
        if raw.strip():
            yield partial(_json_row, raw, path, number)


def _json_row(raw: bytes, path: Path, number: int) -> Row:
    return parsed_object(decoded(raw, path, number), f"{path.name}, line {number}")


def _tab_rows(path: Path) -> Iterator[MakeRow]:
    """The lines below the header; quotation marks are text."""
    lines = numbered_lines(path)
    header = [decoded(raw, path, number).split("\t") for number, raw in islice(lines, 1)]
    for number, raw in lines:
        yield partial(_tab_row, raw, path, number, header[0])


def _tab_row(raw: bytes, path: Path, number: int, header: list[str]) -> Row:
    values = tsv_fields(decoded(raw, path, number), header, f"{path.name}, line {number}")
    return dict(zip(header, values, strict=True))


def _csv_rows(path: Path) -> Iterator[MakeRow]:
    """The records below the header, in the quoting of RFC 4180."""
    csv.field_size_limit(sys.maxsize)  # texts are longer than the module's 128 KiB
    with path.open("rb") as start:
        refuse_other(start.read(START_BYTES), path)
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        reader = csv.reader(file, strict=True)
        header = next(reader, [])
        for values in _records(reader):
            yield partial(_csv_row, values, header, f"{path.name}, line {reader.line_num}")


def _records(reader: Iterator[list[str]]) -> Iterator[list[str] | csv.Error]:
    """The records; after one that is wrongly quoted, the reader goes on with the next line."""
    while True:
        try:
            yield next(reader)
        except csv.Error as error:
            yield error
        except StopIteration:
            return


def _csv_row(values: list[str] | csv.Error, header: list[str], where: str) -> Row:
    if isinstance(values, csv.Error):
        raise ExampleError(f"{where} is no CSV: {values}; repair its quotation marks")
    if len(values) != len(header):
        raise ExampleError(
            f"{where} ends a record of {len(values)} fields; expected {len(header)}: "
            f"{', '.join(header)}"
        )
    return dict(zip(header, values, strict=True))


def _of_library(open_file: Callable[[Path], Any], path: Path) -> Rows:
    data = open_file(path)
    return Rows((partial(dict, row) for row in rows_in(data, path)), class_names(data))


_OPENERS: Final[Mapping[str, Callable[[Path], Rows]]] = {
    ".arrow": partial(_of_library, arrow_file),
    ".csv": lambda path: Rows(_csv_rows(path)),
    ".json": _json,
    ".jsonl": lambda path: Rows(_json_lines(path)),
    ".ndjson": lambda path: Rows(_json_lines(path)),
    ".parquet": partial(_of_library, parquet_file),
    ".tsv": lambda path: Rows(_tab_rows(path)),
}
ENDINGS: Final = tuple(_OPENERS)
