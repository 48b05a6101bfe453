"""A store of an older format brought to this release's.

From 1 to 2: the table ``parses`` is written again with each parse also packed, in one commit, and
dataset tables get the columns that they lack, as null. Each step looks at what is there, so a run
that was killed is simply repeated; the store has the new format when its marker says so, which is
written last. Versions stay readable until they are vacuumed, and pinned ones after that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, Schema, write_deltalake

from featurestore.maintenance.inspect import all_tables
from featurestore.store import FeatureStore
from featurestore.tables.delta import Table
from featurestore.tables.encode.parses import packed_column
from featurestore.tables.files import FileReader
from featurestore.tables.layout import FORMAT_PROPERTY
from featurestore.tables.parses import ROW_GROUP
from featurestore.tables.root import FORMAT, format_of
from featurestore.tables.schema import PARSE_COLUMNS, PARSES
from featurestore.tables.snapshot import Snapshot, snapshot_of
from syntax.errors import StoreError

_PACKED: Final = "parses"
"""The table whose rows are written again."""


@dataclass(frozen=True)
class Migrated:
    """What a migration did to one table, or would do.

    Attributes:
        table: Path below the store.
        format: Format that the table had.
        rows: Rows of its newest version.
        added: Columns that it lacked.
        rewritten: Rows that were written again.
    """

    table: str
    format: int
    rows: int
    added: tuple[str, ...]
    rewritten: int

    def to_json(self) -> dict[str, Any]:
        """The attributes as plain JSON."""
        return asdict(self)


def migrate_store(
    store: FeatureStore, dry_run: bool = False, watch: Callable[[int], None] | None = None
) -> list[Migrated]:
    """Bring every table to this release's format; a store that has it is left as it is.

    Readers go on. Writers of older releases should be stopped first: what they append while a
    table is written again is kept, and what they append later is refused.

    Args:
        store: The store.
        dry_run: Change nothing, and say what there is to do.
        watch: Called with the number of rows that were written again, after some at a time.

    Raises:
        StoreFormatError: A newer release wrote a table.
        StoreBusyError: Another process kept rewriting a table; run it again when that has finished.
        StoreError: A table cannot be read or written; what is done stays done.
    """
    progress = watch or (lambda _: None)
    done = [
        _migrate(name, table, dry_run, progress)
        for name, table in all_tables(store)
        if table.layout.format > 1
    ]
    if not dry_run and store.root.format < FORMAT:
        store.root.mark()
    return done


def _migrate(name: str, table: Table, dry_run: bool, progress: Callable[[int], None]) -> Migrated:
    handle = table.open()
    if handle is None:
        return Migrated(name, table.layout.format, 0, (), 0)
    snapshot = snapshot_of(handle)
    rows = _rows(snapshot)
    rewritten = rows if name == _PACKED and _lacks_records(table, snapshot) else 0
    plan = Migrated(name, format_of(handle), rows, tuple(_missing(table, handle)), rewritten)
    if not dry_run:
        if plan.rewritten:
            table.change(lambda handle: _pack(table, handle, progress))
        table.change(lambda handle: _complete(table, handle))
    return plan


def _missing(table: Table, handle: DeltaTable) -> list[str]:
    there = {field.name for field in handle.schema().fields}
    return [name for name in table.layout.schema.names if name not in there]


def _lacks_records(table: Table, snapshot: Snapshot) -> bool:
    """Whether a row has no packed record; a file of the newest format has a column for it."""
    reader = FileReader(table.location, schema=PARSES.schema)
    return any(
        reader.row_group(file.path, group, ["record"])["record"].null_count
        for file in snapshot.files
        for group in range(len(reader.row_group_starts(file.path)) - 1)
    )


def _complete(table: Table, handle: DeltaTable) -> None:
    """Add columns that are still missing, and say which format the table has."""
    missing = _missing(table, handle)
    if missing:
        fields = [table.layout.schema.field(name) for name in missing]
        handle.alter.add_columns(Schema.from_arrow(pa.schema(fields)).fields)
    if format_of(handle) < table.layout.format:
        handle.alter.set_table_properties(
            {FORMAT_PROPERTY: str(table.layout.format)}, raise_if_not_exists=False
        )


def _pack(table: Table, handle: DeltaTable, progress: Callable[[int], None]) -> None:
    """Write all rows again, each with its packed record.

    Raises:
        StoreError: The rows that were read are not those of the log; nothing was changed.
    """
    snapshot = snapshot_of(handle)
    batches = _packed_batches(table, snapshot, progress)
    write_deltalake(
        handle,
        pa.RecordBatchReader.from_batches(PARSES.schema, _elsewhere(batches)),
        mode="overwrite",
        schema_mode="merge",
        writer_properties=table.layout.writer(ROW_GROUP),
    )
    version = handle.version()
    before, after = (_rows(table.snapshot(at)) for at in (version - 1, version))
    if before != after:
        raise StoreError(
            f"version {version} of {table.location.uri} has {after} rows, and version "
            f"{version - 1} had {before}; keep the older one and report this"
        )


def _elsewhere(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches made in another thread: the writer's threads may not read with its library."""
    with ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(next, batches, None)
        while (batch := ahead.result()) is not None:
            ahead = pool.submit(next, batches, None)
            yield batch


def _packed_batches(
    table: Table, snapshot: Snapshot, progress: Callable[[int], None]
) -> Iterator[pa.RecordBatch]:
    reader, count = FileReader(table.location, schema=PARSES.schema), 0
    for file in sorted(snapshot.files, key=lambda file: (file.written, file.path)):
        for group in range(len(reader.row_group_starts(file.path)) - 1):
            rows = reader.row_group(file.path, group, PARSE_COLUMNS)
            rows = rows.append_column("record", packed_column(rows)).cast(PARSES.schema)
            yield from rows.combine_chunks().to_batches()
            count += rows.num_rows
            progress(rows.num_rows)
    if count != _rows(snapshot):
        raise StoreError(f"{count} rows were read where the log has {_rows(snapshot)}")


def _rows(snapshot: Snapshot) -> int:
    return sum(file.rows for file in snapshot.files)
