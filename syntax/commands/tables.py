"""Rows as every command prints them: a table on a terminal, TSV into a pipe, JSON on request."""

from __future__ import annotations

import csv
import io
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from syntax.strict_json import finite, strict_json

if TYPE_CHECKING:
    from rich.console import Console

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

Form = Literal["table", "markdown", "csv", "json"]
"""``table`` is a table on a terminal, and TSV in a pipe."""

AsForm = Annotated[Form, typer.Option("--format", help="Print a table, Markdown, CSV or JSON.")]

_ESCAPES: Final = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_LONG: Final = 10_000

_NARROWEST: Final = 20


class Size(int):
    """A number of bytes, shown in kB, MB or GB (powers of 1,000)."""


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    as_json: bool = False,
    title: str | None = None,
    form: Form = "table",
) -> None:
    r"""Print rows under the names of their columns.

    On a terminal it is a table, whose long cells continue in the next line. Into a pipe or a file
    it is TSV: a line of names, then a line for each row, with backslashes, tabs and line breaks
    escaped (``\\``, ``\t``, ``\n``, ``\r``), numbers in full, and empty cells for unknown values.
    JSON is a list of objects, in which a repeated name gets a number; CSV is RFC 4180 with LF.
    """
    if as_json or form == "json":
        names = _different(columns)
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    elif form == "markdown":
        typer.echo(markdown_table(columns, rows))
    elif form == "csv":
        lines = io.StringIO()
        cells = ([cell(value) for value in row] for row in (columns, *rows))
        csv.writer(lines, lineterminator="\n").writerows(cells)
        typer.echo(lines.getvalue(), nl=False)
    elif console := _terminal():
        _show(console, columns or ["nothing here"], list(rows), title)
    else:
        _print_tsv([columns, *rows] if columns else [])


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    r"""The rows as a Markdown table; numbers are aligned right, and ``|`` is written ``\|``.

    >>> print(markdown_table(("lang", "UAS"), [("en", 90.35), ("a|b", None)]))
    | lang | UAS |
    |---|---:|
    | en | 90.35 |
    | a\|b |  |
    """
    values = list(rows)
    marks = [
        "---:" if values and all(_is_number(row[at]) for row in values) else "---"
        for at in range(len(columns))
    ]
    lines = [[_escaped(value).replace("|", "\\|") for value in row] for row in (columns, *values)]
    head, *body = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([head, f"|{'|'.join(marks)}|", *body])


def print_rows(
    rows: Sequence[Mapping[str, object]],
    as_json: bool = False,
    title: str | None = None,
    form: Form = "table",
) -> None:
    columns = list(rows[0]) if rows else []
    print_table(columns, [list(row.values()) for row in rows], as_json, title, form)


def print_record(
    record: Mapping[str, object], as_json: bool = False, title: str | None = None
) -> None:
    if as_json:
        print_json(record)
    elif console := _terminal():
        _show(console, None, list(record.items()), title)
    else:
        _print_tsv(record.items())


def print_json(content: object) -> None:
    """Print JSON with null for NaN and infinity, and base64 for bytes."""
    typer.echo(strict_json(content, default=_plain))


def cell(value: object) -> str:
    """A value as text: empty for ``None``, NaN and infinity; lists and dicts are JSON."""
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(cell, value))
    if isinstance(value, list | dict):
        return json.dumps(finite(value), ensure_ascii=False, default=_plain)
    plain = value if isinstance(value, str | int | float) else _plain(value)
    return str(plain)


def _plain(value: object) -> str:
    return b64encode(value).decode() if isinstance(value, bytes | bytearray) else str(value)


def _print_tsv(rows: Iterable[Sequence[object]]) -> None:
    for row in rows:
        typer.echo("\t".join(map(_escaped, row)))


def _escaped(value: object) -> str:
    return re.sub(r"[\\\t\n\r]", lambda found: _ESCAPES[found[0]], cell(value))


def _readable(value: object) -> str:
    if isinstance(value, Size):
        for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
            if value >= unit:
                return f"{value / unit:,.1f} {name}"
        return f"{value} B"
    if isinstance(value, int) and abs(value) >= _LONG:  # a number of four digits may be a year
        return f"{value:,}"
    if isinstance(value, float) and isfinite(value):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:,.1f}"
    return cell(value)


def _terminal() -> Console | None:
    from rich.console import Console

    console = Console(markup=False, emoji=False)
    return console if console.is_terminal else None


def _show(
    console: Console,
    columns: Sequence[str] | None,
    rows: Sequence[Sequence[object]],
    title: str | None,
) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=None if title is None else Text(title),
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        show_header=columns is not None,
    )
    names = columns if columns is not None else [""] * 2
    for at, name in enumerate(names):
        values = [row[at] for row in rows]
        longest = max(map(len, chain([name], map(_readable, values))))
        table.add_column(
            Text(name),
            overflow="fold",
            min_width=min(longest, _NARROWEST),
            justify="right" if all(map(_is_number, values)) and values else "left",
        )
    for row in rows:
        table.add_row(*(Text(_readable(value)) for value in row))
    # If the narrowest columns exceed the width of the terminal, the terminal wraps the lines.
    least = console.measure(table, options=console.options.update(max_width=100_000)).minimum
    console.print(table, width=max(console.width, least), crop=False)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _different(columns: Sequence[str]) -> list[str]:
    """Names, of which a repeated one gets a number: ``n``, ``n_1``."""
    names: list[str] = []
    for column in columns:
        numbered = (f"{column}_{number}" for number in count(1))
        names.append(next(name for name in chain([column], numbered) if name not in names))
    return names
