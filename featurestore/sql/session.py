"""A DuckDB session in memory over one moment of the store."""

from __future__ import annotations

import atexit
import re
import weakref
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import duckdb

from featurestore.sql import views
from featurestore.sql.functions import FUNCTIONS
from featurestore.sql.patterns import as_sql
from featurestore.tables.delta import quoted
from syntax.errors import SpecError, StoreError

if TYPE_CHECKING:
    from featurestore.store import FeatureStore

_EXPLAIN: Final = re.compile(r"\A\s*explain\b(\s+analyze\b)?", re.IGNORECASE)

_SPELLING: Final = re.compile(r'"(alias|query_location|query_location_length)":("[^"]*"|\d+),')
"""Parts of a query's tree that do not change its meaning."""

_OPEN: Final[weakref.WeakSet[duckdb.DuckDBPyConnection]] = weakref.WeakSet()


def run_query(
    store: FeatureStore,
    query: str,
    params: list[Any] | dict[str, Any] | None = None,
    config: Mapping[str, str] | None = None,
) -> duckdb.DuckDBPyRelation:
    query = as_sql(query)
    connection = open_session(store, config, *_asked(query))
    statements = connection.extract_statements(query)
    if not _is_select(connection, statements):
        kinds = ", ".join(statement.type.name for statement in statements) or "none"
        raise SpecError(
            f"the store is read-only: a query is one SELECT (or FROM, WITH, VALUES, DESCRIBE; "
            f"PIVOT names its values with IN) or EXPLAIN and a SELECT, and these statements came: "
            f"{kinds}. To write files, use `parsebank store export`, or what the relation gives to "
            "Python"
        )
    return connection.sql(query, params=params)


def _is_select(
    connection: duckdb.DuckDBPyConnection, statements: Sequence[duckdb.Statement]
) -> bool:
    kinds = [statement.type for statement in statements]
    if kinds == [duckdb.StatementType.EXPLAIN]:
        # What EXPLAIN ANALYZE explains is run, and may be a COPY.
        explained = _EXPLAIN.sub("", statements[0].query)
        try:
            kinds = [statement.type for statement in connection.extract_statements(explained)]
        except duckdb.ParserException:  # of EXPLAIN with options
            return False
    return kinds == [duckdb.StatementType.SELECT]


def _asked(query: str) -> tuple[Set[str], bool]:
    """The views that a query names, all if that cannot be told; and if it only counts rows."""
    with duckdb.connect() as connection:
        connection.execute("set enable_external_access = false")
        connection.execute("set python_enable_replacements = false")
        try:
            names = {name.lower() for name in connection.get_table_names(query)}
        except duckdb.Error:
            return views.NAMES, False
        wanted = frozenset(names) if names <= views.NAMES else views.NAMES
        return wanted, "count" in query.lower() and _only_counts(connection, query, wanted)


def _only_counts(connection: duckdb.DuckDBPyConnection, query: str, wanted: Set[str]) -> bool:
    """``True`` if a query is no more than ``select count(*)`` from a view over tables."""

    def tree(sql: str) -> str:
        found = connection.execute("select json_serialize_sql($1::varchar)", [sql]).fetchone()
        return _SPELLING.sub("", str(found))

    counted = wanted - views.MADE_OF.keys()
    return len(wanted) == 1 and any(
        tree(query) == tree(f"select count(*) from {view}") for view in counted
    )


def open_session(
    store: FeatureStore,
    config: Mapping[str, str] | None = None,
    wanted: Set[str] = views.NAMES,
    only_counts: bool = False,
) -> duckdb.DuckDBPyConnection:
    """A connection with the store's views and functions, at the newest version of each table.

    The relations made from it keep it open; it holds no lock and no file of its own. It reads the
    files behind the views and no other; its configuration is locked. Views other than ``wanted``
    are empty, so that no table is read for them. With ``only_counts``, the number of rows comes
    from the logs, and no file is read.
    """
    _close_at_exit()
    # A name that is no view is a mistake, not a Python variable of the caller.
    options: dict[str, str | bool | int | float | list[str]] = {**(config or {})}
    connection = duckdb.connect(config={**options, "python_enable_replacements": "false"})
    _OPEN.add(connection)
    # It takes `python -c` for a person, and would draw bars into what the script prints.
    with suppress(duckdb.InvalidInputException):  # a notebook that cannot draw them refuses
        connection.execute("set enable_progress_bar = false")
    for function in FUNCTIONS:
        function.register(connection)
    relations = views.TableRelations(connection, only_counts)
    needed = wanted | {views.MADE_OF[name] for name in wanted if name in views.MADE_OF}
    _create_views(connection, relations, store, needed)
    # It reads these files and no other, for good.
    connection.execute(f"set allowed_paths = [{', '.join(map(quoted, relations.files))}]")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")
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


def _create_views(
    connection: duckdb.DuckDBPyConnection,
    relations: views.TableRelations,
    store: FeatureStore,
    needed: Set[str],
) -> None:
    parses = store.parses
    handle = parses.table.open() if "parses" in needed else None
    repeated = handle is not None and parses.has_repeats(handle.version())
    # The look for repeats has found the unreadable files.
    rows = relations.of(parses.table, handle, "key" if repeated else None, parses.unreadable)
    rows.create_view("parses")
    for name, table in (("drops", store.drops.table), ("fingerprints", store.fingerprints.table)):
        relations.of(table, table.open() if name in needed else None).create_view(name)
    datasets = list(_datasets(relations, store)) if "examples" in needed else []
    views.create_examples_view(connection, datasets)


def _datasets(
    relations: views.TableRelations, store: FeatureStore
) -> Iterator[tuple[duckdb.DuckDBPyRelation, str, str]]:
    for card, table in store.features.tables():
        handle = table.open()
        repeated = handle is not None and store.features.has_repeats(card, handle.version())
        unique_by = "split, lang, example_key" if repeated else None
        # As above: of remote files, only what was read is known.
        rows = relations.of(table, handle, unique_by, store.features.unreadable(card))
        yield rows, card.name, card.tokenizer


@cache
def _close_at_exit() -> None:
    atexit.register(_close_all)


def _close_all() -> None:
    # A connection that outlives the interpreter's teardown is reported as a leak on stderr.
    for connection in list(_OPEN):
        connection.close()
