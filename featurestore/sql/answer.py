"""The answer to a query as plain JSON, within bounds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import duckdb

from featurestore.sql.session import run_query
from syntax.errors import SpecError

if TYPE_CHECKING:
    from featurestore.store import FeatureStore

ANSWER_BYTES: Final = 4_000_000

_LARGEST_INTEGER: Final = 2**53
"""Browsers read numbers as doubles, which hold every integer up to this one."""


_ZONED: Final = "TIMESTAMP WITH TIME ZONE"


def answer_query(store: FeatureStore, query: str, limit: int, memory_bytes: int) -> dict[str, Any]:
    """Columns and rows of a query, at most ``limit``; ``truncated`` if there are more rows.

    DuckDB may take ``memory_bytes``; it writes no temporary file.
    """
    bounds = {"memory_limit": f"{memory_bytes}B", "threads": "2", "temp_directory": ""}
    try:
        relation = run_query(store, query, config=bounds)
        columns = list(zip(relation.columns, map(str, relation.types), strict=True))
        rows = fetch_rows(relation.limit(limit + 1))
    except duckdb.Error as error:
        raise SpecError(str(error)) from error
    kept = _within([[_plain(value) for value in row] for row in rows[:limit]])
    return {
        "columns": [{"name": name, "type": kind} for name, kind in columns],
        "rows": kept,
        "truncated": len(kept) < len(rows),
    }


def fetch_rows(relation: duckdb.DuckDBPyRelation) -> list[tuple[Any, ...]]:
    """The rows of a relation as Python values; times with a zone, which need a library, as text."""
    kinds = [str(kind) for kind in relation.types]
    if any(_ZONED in kind for kind in kinds):
        columns = [
            f"#{place}::{kind.replace(_ZONED, 'VARCHAR')}" if _ZONED in kind else f"#{place}"
            for place, kind in enumerate(kinds, 1)
        ]
        relation = relation.project(", ".join(columns))
    return relation.fetchall()


def _within(rows: list[list[Any]]) -> list[list[Any]]:
    size = 0
    for at, row in enumerate(rows):
        size += len(json.dumps(row))
        if size > ANSWER_BYTES:
            if at == 0:
                raise SpecError(
                    f"one row takes {size} bytes as JSON, and an answer has at most "
                    f"{ANSWER_BYTES}; select fewer or shorter columns"
                )
            return rows[:at]
    return rows


def _plain(value: Any) -> Any:
    """A value of DuckDB as JSON has it; what JSON has no form for is text."""
    if isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
        return str(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, Iterable):
        return [_plain(inner) for inner in value]
    return str(value)
