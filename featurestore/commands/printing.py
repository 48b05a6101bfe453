"""What the commands share: their options, and rows as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

Where = Annotated[
    str, typer.Option("--store", envvar="PARSEBANK_STORE", help="Folder or URL of the store.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

DEFAULT_STORE = "parsebank-data"


def print_rows(rows: list[dict[str, object]], as_json: bool) -> None:
    """Print rows of equal keys."""
    if as_json:
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False, default=str))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*(rows[0] if rows else ["nothing here"]))
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)


@contextmanager
def rows_bar(total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr that tells how many rows of so many are done; call what it gives."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("rows", total=total)
        yield lambda count: bar.advance(task, count)
