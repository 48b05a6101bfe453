"""A DuckDB session in memory over one moment of the store."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final

import duckdb

from featurestore.sql import views
from featurestore.sql.functions import FUNCTIONS
from syntax.errors import StoreError

if TYPE_CHECKING:
    from featurestore.store import FeatureStore

_OPEN: Final[weakref.WeakSet[duckdb.DuckDBPyConnection]] = weakref.WeakSet()


def open_session(store: FeatureStore) -> duckdb.DuckDBPyConnection:
    """A connection with the store's views and functions, at the newest version of each table.

    The relations made from it keep it open; it holds no lock and no file of its own.
    """
    _close_at_exit()
    # A name that is no view is a mistake, not a Python variable of whoever calls.
    connection = duckdb.connect(config={"python_enable_replacements": "false"})
    _OPEN.add(connection)
    # It takes `python -c` for a person, and would draw bars into what the script prints.
    connection.execute("set enable_progress_bar = false")
    for function in FUNCTIONS:
        function.register(connection)
    repeated = "key" if store.parses.has_repeats() else None
    views.create_table_view(connection, "parses", store.parses.table, repeated)
    views.create_table_view(connection, "drops", store.drops.table)
    views.create_table_view(connection, "fingerprints", store.fingerprints.table)
    _create_dataset_views(connection, store)
    for view in (views.SENTENCES, views.WORDS, views.SEGMENTS):
        connection.execute(view)
    return connection


@contextmanager
def named_faults() -> Iterator[None]:
    """Raise what DuckDB finds wrong with files as an error of the store; also a decorator."""
    try:
        yield
    except duckdb.Error as error:
        raise StoreError(
            f"the store cannot be queried: {error}\n`parsebank store validate` says what is damaged"
        ) from error


def _create_dataset_views(connection: duckdb.DuckDBPyConnection, store: FeatureStore) -> None:
    datasets = []
    for number, (card, table) in enumerate(store.features.tables()):
        view = f"dataset_{number}"
        repeated = "split, lang, example_key" if store.features.has_repeats(card) else None
        views.create_table_view(connection, view, table, repeated)
        datasets.append((view, card.name, card.tokenizer))
    views.create_examples_view(connection, datasets)


@cache
def _close_at_exit() -> None:
    atexit.register(_close_all)


def _close_all() -> None:
    # A connection that outlives the interpreter's teardown is reported as a leak on stderr.
    for connection in list(_OPEN):
        connection.close()
