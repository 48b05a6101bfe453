"""Options of the commands, the store that they open, and a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from featurestore.store import FeatureStore

Where = Annotated[
    str, typer.Option("--store", envvar="PARSEBANK_STORE", help="Folder or URL of the store.")
]

Langs = Annotated[list[str] | None, typer.Option("--lang", help="Only these languages, as en,fr.")]
Parsers = Annotated[
    list[str] | None,
    typer.Option(
        "--parser",
        help="Only this parser, by name or fingerprint, or one per language, as en:NAME,fr:NAME.",
    ),
]

Version = Annotated[
    str | None, typer.Option("--version", help="An older version, or the name of a pin.")
]


def open_there(uri: str) -> FeatureStore:
    """Open a store that must exist."""
    from featurestore.store import open_store
    from featurestore.tables.root import MARKER, read_format
    from syntax.errors import StoreFormatError

    opened = open_store(uri)
    if read_format(opened.root.location) is None:
        raise StoreFormatError(
            f"there is no store at {opened.uri}: it has no {MARKER}; name another with --store"
        )
    return opened


def version_of(given: str | None) -> int | str | None:
    """A version as the store takes it: a number, or the name of a pin."""
    return int(given) if given is not None and given.isdecimal() else given


@contextmanager
def rows_bar(total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar of rows on stderr; yields the function that advances it."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    console = Console(stderr=True, markup=False, emoji=False)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("rows", total=total)
        yield lambda count: bar.advance(task, count)
