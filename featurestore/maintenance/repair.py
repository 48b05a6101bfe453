"""Repair of a store: take out what is damaged, keep what can be read, and say what is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from featurestore.maintenance.inspect import all_tables
from featurestore.maintenance.log_repair import (
    DAMAGED,
    LogFault,
    log_faults,
    mend,
    table_locations,
    unmentioned_files,
)
from featurestore.store import FeatureStore
from featurestore.tables.delta import Table
from featurestore.tables.files import FileReader, UnreadableFileError
from featurestore.tables.snapshot import DataFile
from syntax.errors import StoreError

_KEYS: Final = {"parses": "key", "fingerprints": "fingerprint"}
_EXAMPLE_KEY: Final = "example_key"


@dataclass(frozen=True)
class LostFile:
    """A data file that cannot be read, or not all of it.

    Attributes:
        table: Path of the table below the store.
        path: Path of the file below the table.
        rows: Rows that the log says it has.
        readable: Those that can still be read; a repair appends them again.
        message: What is wrong.
    """

    table: str
    path: str
    rows: int
    readable: int
    message: str


@dataclass(frozen=True)
class NeededParse:
    """A parse that an example refers to and the store lacks; parsing its text makes it again."""

    key: str
    parser: str
    lang: str
    text: str


@dataclass
class Repair:
    """What a repair found, or did.

    Attributes:
        is_done: Whether the store was changed.
        log: Damage to logs.
        files: Data files that cannot be read.
        recovered: Rows by table that were appended again, or would be: of damaged entries, from
            data files that no entry mentions.
        needed: Parses that examples refer to and the store lacks; examples themselves have all
            that a trainer reads.
        unchecked: Tables that cannot be opened before their log is repaired.
    """

    is_done: bool
    log: list[LogFault] = field(default_factory=list)
    files: list[LostFile] = field(default_factory=list)
    recovered: Counter[str] = field(default_factory=Counter)
    needed: list[NeededParse] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """Whether nothing was damaged."""
        return not (self.log or self.files)

    def to_json(self) -> dict[str, Any]:
        """The attributes as plain JSON."""
        return asdict(self)


def repair_store(
    store: FeatureStore, dry_run: bool = True, watch: Callable[[int], None] | None = None
) -> Repair:
    """Find what is damaged; unless it is a dry run, take it out and append what can be read.

    Damaged entries of logs become entries without changes, and rows of data files that no entry
    mentions are appended if the table has none with their key. Files that cannot be read go to the
    folder ``_damaged`` of their table. Writers must be stopped. A second run finds nothing more.

    Args:
        store: The store.
        dry_run: Only say what would be done.
        watch: Called with the number of rows that were read, after some at a time.

    Raises:
        StoreError: A file cannot be read or written now, or a log cannot be mended.
    """
    report, progress = Repair(not dry_run), watch or (lambda _: None)
    for name, location in table_locations(store.root.location):
        report.log += log_faults(name, location)
    if not dry_run:
        _mend_logs(store, report.log)
    torn = {fault.table for fault in report.log if fault.action != "none"}
    if dry_run and torn:
        report.unchecked = sorted(torn)
        return report
    for name, table in all_tables(store):
        _repair_table(name, table, report, progress)
        if name in torn:
            report.recovered[name] += _append_unmentioned(name, table)
    store.parses.refresh()
    report.needed = list(_needed(store))
    return report


def _mend_logs(store: FeatureStore, faults: list[LogFault]) -> None:
    if lost := [fault for fault in faults if fault.action == "restore"]:
        first = lost[0]
        raise StoreError(
            f"{first.table}: {first.file}: {first.message}; nothing says what was in it, and a "
            "version needs it. Restore the table from a backup"
        )
    for fault in faults:
        if fault.action != "none":
            mend(store.root.location.child(*fault.table.split("/")), fault)


def _repair_table(name: str, table: Table, report: Repair, progress: Callable[[int], None]) -> None:
    """Find the unreadable files of a table; take them out unless the report is of a dry run."""
    reader = FileReader(table.location, schema=table.layout.schema)
    lost = []
    for file in table.snapshot().files:
        message = _fault(reader, table, file)
        progress(file.rows)
        if message is None:
            continue
        rows = _readable_rows(reader, table, file.path)
        lost.append(LostFile(name, file.path, file.rows, rows.num_rows, message))
        if report.is_done and rows.num_rows:
            table.append(rows)
    report.files += lost
    if report.is_done and lost:
        for one in lost:
            _set_aside(table, one.path)
        # It removes from the log what is not there.
        table.change(lambda handle: handle.repair())


def _fault(reader: FileReader, table: Table, file: DataFile) -> str | None:
    """What is wrong with a file."""
    try:
        starts = reader.row_group_starts(file.path)
        for group in range(len(starts) - 1):
            rows = _row_group(reader, table, file.path, group)
            if len(_with_keys(rows)) < len(rows):
                return f"{file.path} has rows without a key"
        file.check_rows(int(starts[-1]))
    except UnreadableFileError as error:
        return str(error)
    return None


def _with_keys(rows: pa.Table) -> pa.Table:
    """The rows whose key is one."""
    name = next((name for name in ("key", _EXAMPLE_KEY) if name in rows.column_names), None)
    if name is None:
        return rows
    valid = pc.match_substring_regex(rows[name], "^[0-9a-f]{32}$")
    return rows.filter(valid)  # null is no key either


def _row_group(reader: FileReader, table: Table, path: str, group: int) -> pa.Table:
    """A row group with all columns of its table; those of the partition are in the path."""
    schema = table.layout.schema
    parts = dict(part.split("=", 1) for part in path.split("/")[:-1])
    names = [name for name in schema.names if name not in parts]
    rows = reader.row_group(path, group, names)
    for name, value in parts.items():
        column = pa.array([unquote(value)] * rows.num_rows, pa.string())
        rows = rows.append_column(name, column)
    return rows.select(schema.names).cast(schema)


def _set_aside(table: Table, path: str) -> None:
    content = table.location.read(path)
    if content is not None:
        table.location.child(DAMAGED).write(path.replace("/", "__"), content)
        table.location.files.delete_file(path)


def _append_unmentioned(name: str, table: Table) -> int:
    """Append the rows of files that no entry mentions, if no row has their key."""
    key = _KEYS.get(name, _EXAMPLE_KEY)
    if key not in table.layout.schema.names:
        return 0
    reader = FileReader(table.location, schema=table.layout.schema)
    identity = [key, *table.layout.partition_by]
    held = {
        row
        for file in table.snapshot().files
        for row in _identities(_readable_rows(reader, table, file.path), identity)
    }
    appended = 0
    for path in unmentioned_files(table.location):
        rows = _readable_rows(reader, table, path)
        new = [row not in held for row in _identities(rows, identity)]
        kept = rows.filter(pa.array(new, pa.bool_()))
        if kept.num_rows:
            table.append(kept)
            held.update(_identities(kept, identity))
            appended += kept.num_rows
    return appended


def _readable_rows(reader: FileReader, table: Table, path: str) -> pa.Table:
    """The rows of the row groups of a file that can be read."""
    found = [table.layout.schema.empty_table()]
    with suppress(UnreadableFileError):
        for group in range(len(reader.row_group_starts(path)) - 1):
            with suppress(UnreadableFileError):
                found.append(_with_keys(_row_group(reader, table, path, group)))
    return pa.concat_tables(found)


def _identities(rows: pa.Table, columns: list[str]) -> list[tuple[str, ...]]:
    return list(zip(*(rows[name].to_pylist() for name in columns), strict=True))


def _needed(store: FeatureStore) -> Iterator[NeededParse]:
    """Parses that examples refer to and the store lacks."""
    seen: set[str] = set()
    for _, table in store.features.tables():
        reader = FileReader(table.location, schema=table.layout.schema)
        for file in table.snapshot().files:
            rows = reader.columns(file.path, ["parse_keys", "parser", "texts"])
            keys = pc.list_flatten(rows["parse_keys"]).to_pylist()
            missing = set(store.parses.missing(keys)) - seen
            if not missing:
                continue
            for own, parser, texts in zip(*(c.to_pylist() for c in rows.columns), strict=True):
                for key, text in zip(own, texts, strict=True):
                    if key in missing and key not in seen:
                        seen.add(key)
                        yield NeededParse(key, parser, file.partition["lang"], text)
