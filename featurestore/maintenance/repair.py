"""Repair of a store: take out what is damaged, keep what can be read, and say what is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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

_KEYS: Final = {"parses": "key", "fingerprints": None, "drops": None, "pins": None}
"""Column by which rows are looked up; any other table has ``example_key``. Without one, whole rows
are compared."""


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
    reader, lost = _Rows(name, table), []
    for file in table.snapshot().files:
        message = reader.fault(file)
        progress(file.rows)
        if message is None:
            continue
        rows = reader.readable(file.path)
        lost.append(LostFile(name, file.path, file.rows, rows.num_rows, message))
        if report.is_done and rows.num_rows:
            table.append(rows)
    report.files += lost
    if report.is_done and lost:
        for one in lost:
            _set_aside(table, one.path)
        # It removes from the log what is not there.
        table.change(lambda handle: handle.repair())


class _Rows:
    """Rows of a table's files.

    Attributes:
        key: Column of keys, 32 hexadecimal digits; None if rows are not looked up by one.
        identity: Columns that tell rows apart.
    """

    def __init__(self, name: str, table: Table) -> None:
        self.key = _KEYS.get(name, "example_key")
        self._schema = table.layout.schema
        own = self._schema.names if self.key is None else [self.key, *table.layout.partition_by]
        self.identity: Sequence[str] = own
        self._reader = FileReader(table.location, schema=self._schema)

    def fault(self, file: DataFile) -> str | None:
        """What is wrong with a file."""
        try:
            starts = self._reader.row_group_starts(file.path)
            for group in range(len(starts) - 1):
                rows = self._group(file.path, group)
                if len(self._with_keys(rows)) < len(rows):
                    return f"{file.path} has rows without a key"
            file.check_rows(int(starts[-1]))
        except UnreadableFileError as error:
            return str(error)
        return None

    def readable(self, path: str) -> pa.Table:
        """The rows with a key of the row groups that can be read."""
        found = [self._schema.empty_table()]
        with suppress(UnreadableFileError):
            for group in range(len(self._reader.row_group_starts(path)) - 1):
                with suppress(UnreadableFileError):
                    found.append(self._with_keys(self._group(path, group)))
        return pa.concat_tables(found)

    def columns(self, file: DataFile, names: Sequence[str]) -> pa.Table:
        """Some columns of a whole file."""
        stored = [name for name in names if name not in file.partition]
        return _with_parts(self._reader.columns(file.path, stored), file.partition).select(names)

    def _with_keys(self, rows: pa.Table) -> pa.Table:
        """The rows whose key is one; null is none."""
        if self.key is None:
            return rows
        return rows.filter(pc.match_substring_regex(rows[self.key], "^[0-9a-f]{32}$"))

    def _group(self, path: str, group: int) -> pa.Table:
        # Of a file that no entry mentions, only the path says the partition.
        parts = {
            name: unquote(value)
            for name, _, value in (part.partition("=") for part in path.split("/")[:-1])
        }
        names = [name for name in self._schema.names if name not in parts]
        rows = _with_parts(self._reader.row_group(path, group, names), parts)
        return rows.select(self._schema.names).cast(self._schema)


def _with_parts(rows: pa.Table, parts: Mapping[str, str]) -> pa.Table:
    """With the columns of the partition, which files do not have."""
    for name, value in parts.items():
        rows = rows.append_column(name, pa.array([value] * rows.num_rows, pa.string()))
    return rows


def _set_aside(table: Table, path: str) -> None:
    content = table.location.read(path)
    if content is not None:
        table.location.child(DAMAGED).write(path.replace("/", "__"), content)
        table.location.files.delete_file(path)


def _append_unmentioned(name: str, table: Table) -> int:
    """Append the rows of files that no entry mentions, if the table has none with their key."""
    reader = _Rows(name, table)
    held = {
        row
        for file in table.snapshot().files
        for row in _identities(reader.columns(file, reader.identity))
    }
    appended = 0
    for path in unmentioned_files(table.location):
        rows = reader.readable(path)
        new = [row not in held for row in _identities(rows.select(reader.identity))]
        kept = rows.filter(pa.array(new, pa.bool_()))
        if kept.num_rows:
            table.append(kept)
            held.update(_identities(kept.select(reader.identity)))
            appended += kept.num_rows
    return appended


def _identities(rows: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


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
