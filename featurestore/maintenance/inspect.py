"""The tables of a store with their sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from featurestore.store import FeatureStore
from featurestore.tables.delta import Table
from featurestore.tables.states import states_tables


@dataclass(frozen=True)
class TableInfo:
    """Size of one table at its newest version.

    Attributes:
        table: Path below the store.
        version: -1 before the first version.
        size: Bytes of the active files.
    """

    table: str
    version: int
    files: int
    rows: int
    size: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def inspect_store(store: FeatureStore) -> list[TableInfo]:
    found = []
    for name, table in all_tables(store):
        snapshot = table.snapshot()
        found.append(
            TableInfo(
                table=name,
                version=snapshot.version,
                files=len(snapshot.files),
                rows=sum(file.rows for file in snapshot.files),
                size=sum(file.size for file in snapshot.files),
            )
        )
    return found


def all_tables(store: FeatureStore) -> Iterator[tuple[str, Table]]:
    """Every table by its path below the store."""
    yield "parses", store.parses.table
    for card, table in store.features.tables():
        yield f"datasets/{card.path}", table
    yield from states_tables(store.root)
    yield "drops", store.drops.table
    yield "fingerprints", store.fingerprints.table
    yield "pins", store.pins.table
