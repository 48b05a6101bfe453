"""The sub-commands ``parsebank store ...``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import typer

from featurestore.commands import reports, tables
from featurestore.commands.printing import Where, open_there

__all__ = ["Where", "open_there", "register"]

_COMMANDS: Final[tuple[Callable[..., None], ...]] = (
    *(tables.inspect, tables.datasets, tables.sql, tables.validate, tables.repair),
    tables.compact,
    *(tables.pin, tables.unpin, tables.pins, tables.vacuum, tables.evict, tables.delete),
    *(reports.stats, reports.diff, reports.word_order, reports.export, reports.noise),
)


def register(app: typer.Typer) -> None:
    store = typer.Typer(help="Query, check, maintain and export a store.", no_args_is_help=True)
    for command in _COMMANDS:
        store.command()(command)
    app.add_typer(store, name="store")
