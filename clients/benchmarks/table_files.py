"""Files of rows with named columns: JSON lines, CSV, TSV, and saved `datasets`.

The library `datasets`, an extra, is imported only when a Parquet or Arrow file is read.
"""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from clients.benchmarks.documents import checked_object, parsed_object, records_of
from clients.benchmarks.lines import Line, numbered_lines
from clients.files import open_file, plain_path
from syntax.errors import ExampleError, InputError, SpecError
from syntax.examples import LabelKind
from syntax.extras import missing_extra

Row = Mapping[str, Any]
MakeRow = Callable[[], Row]
"""Returns a row, or raises the named error of its line."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a file as a stream, and class names of the columns that have numbers for classes."""

    rows: Iterator[MakeRow]
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def open_rows(path: Path) -> Rows:
    opener = _OPENERS.get(plain_path(path).suffix)
    if opener is None:
        raise InputError(
            f"{path.name} is no table of a known kind; expected one of {', '.join(ENDINGS)}",
            path=str(path),
        )
    return opener(path)


def has_header(path: Path) -> bool:
    return plain_path(path).suffix not in (".json", ".jsonl", ".ndjson")


def _json(path: Path) -> Rows:
    """List of objects, or an object on each line: the first character decides."""
    with open_file(path) as file:
        start = file.read(64)
    is_list = start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    return Rows(_listed(path) if is_list else _json_lines(path))


def _listed(path: Path) -> Iterator[MakeRow]:
    for number, record in enumerate(records_of(path, "item"), 1):
        yield partial(checked_object, record, f"{path.name}, record {number}")


def _json_lines(path: Path) -> Iterator[MakeRow]:
    for line in numbered_lines(path):
        if line.raw.strip():
            yield partial(_json_row, line)


def _json_row(line: Line) -> Row:
    return parsed_object(line.text(), line.where)


def _tab(path: Path) -> Rows:
    lines = (line for line in numbered_lines(path) if line.raw)
    header = _checked_header(next(lines, Line(path, 1, b"")).text().split("\t"), path)
    return Rows(partial(_tab_row, line, header) for line in lines)


def _tab_row(line: Line, header: list[str]) -> Row:
    return dict(zip(header, line.fields(header), strict=True))


def _csv(path: Path) -> Rows:
    """Records below the header, in the quoting of RFC 4180."""
    csv.field_size_limit(sys.maxsize)  # texts are longer than the module's 128 KiB
    records = _records(path)
    _, _, names = next(records, (1, 1, []))
    if isinstance(names, csv.Error):
        raise InputError(
            f"the header of {path.name} is no CSV: {names}; repair its quotation marks",
            path=str(path),
        )
    header = _checked_header(names, path)
    return Rows(partial(_csv_row, path, header, *record) for record in records)


_Record = tuple[int, int, list[str] | csv.Error]


def _records(path: Path) -> Iterator[_Record]:
    """Records with first and last line; after a quoting error, the next line is read."""
    bad_bytes = "surrogateescape"
    with io.TextIOWrapper(open_file(path), "utf-8-sig", bad_bytes, newline="") as file:
        reader = csv.reader(file, strict=True)
        while True:
            first = reader.line_num + 1
            try:
                values: list[str] | csv.Error = next(reader)
            except csv.Error as error:
                values = error
            except StopIteration:
                return
            if values != []:
                yield first, reader.line_num, values


def _csv_row(
    path: Path, header: list[str], first: int, last: int, values: list[str] | csv.Error
) -> Row:
    if isinstance(values, csv.Error):
        if first == last:
            raise ExampleError(
                f"{path.name}, line {last} is no CSV: {values}; repair its quotation marks"
            )
        raise ExampleError(
            f"{path.name}, lines {first} to {last} are no CSV: {values}; none of them was read: "
            "close the quotation mark"
        )
    if len(values) != len(header):
        raise ExampleError(
            f"{path.name}, line {last} ends a record of {len(values)} fields; expected "
            f"{len(header)}: {', '.join(header)}"
        )
    return dict(zip(header, values, strict=True))


def _checked_header(header: list[str], path: Path) -> list[str]:
    repeated = [name for name, count in Counter(header).items() if name and count > 1]
    if repeated:
        raise InputError(
            f"{path.name} has several columns {repeated[0]!r}: {', '.join(header)}; give each a "
            "name of its own",
            path=str(path),
        )
    return header


def _of_library(opened: Callable[[Path], Any], path: Path) -> Rows:
    if plain_path(path) != path:
        raise InputError(
            f"{path} is packed, but such files are compressed inside; unpack it first",
            path=str(path),
        )
    data = opened(path)
    return Rows((partial(dict, row) for row in rows_in(data, path)), class_names(data))


def parquet_file(path: Path) -> Any:
    """Stream of rows (`datasets.IterableDataset`), not copied into a cache."""
    datasets = _library(path)
    files = {"all": str(path)}
    try:
        return datasets.load_dataset("parquet", data_files=files, split="all", streaming=True)
    except Exception as error:  # the library and Arrow raise various errors for a damaged file
        raise _damaged(path, error) from error


def arrow_file(path: Path) -> Any:
    datasets = _library(path)
    try:
        return datasets.Dataset.from_file(str(path))
    except Exception as error:
        raise _damaged(path, error) from error


def rows_in(data: Any, path: Path) -> Iterator[Mapping[str, Any]]:
    """Rows of an open file; an `InputError` if it is damaged after the rows yielded so far."""
    try:
        yield from data
    except Exception as error:
        raise _damaged(path, error) from error


def class_names(data: Any) -> dict[str, tuple[str, ...]]:
    features = {column: _innermost(feature) for column, feature in (data.features or {}).items()}
    return {
        column: tuple(feature.names)
        for column, feature in features.items()
        if hasattr(feature, "names")
    }


def plain_dataset(data: Any) -> Any:
    """One split whose rows are Python's own values, not arrays or tensors."""
    if isinstance(data, dict):
        names = ", ".join(map(str, data))
        raise SpecError(
            f"the data is a {type(data).__name__} of the splits {names}; pass one of them, such as "
            f"data[{next(iter(data), 'train')!r}]"
        )
    transformed = getattr(data, "format", {}).get("type") == "custom"
    return data if transformed else data.with_format(None)


def kind_of(feature: Any) -> LabelKind:
    if hasattr(_innermost(feature), "names"):
        return "class" if hasattr(feature, "names") else "tags"
    return "float" if str(getattr(feature, "dtype", "")).startswith("float") else "class"


def _innermost(feature: Any) -> Any:
    if isinstance(feature, list):
        return feature[0]
    return getattr(feature, "feature", feature)


def _library(path: Path) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise missing_extra(f"{path.name} is read by the library `datasets`", "hf") from error
    return datasets


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} cannot be read: {error}; fetch or write it again", path=str(path))


_OPENERS: Final[Mapping[str, Callable[[Path], Rows]]] = {
    ".arrow": partial(_of_library, arrow_file),
    ".csv": _csv,
    ".json": _json,
    ".jsonl": lambda path: Rows(_json_lines(path)),
    ".ndjson": lambda path: Rows(_json_lines(path)),
    ".parquet": partial(_of_library, parquet_file),
    ".tsv": _tab,
}
ENDINGS: Final = tuple(_OPENERS)
