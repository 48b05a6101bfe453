"""Repair of a store: take out what is damaged, keep what can be read, and say what is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow.compute as pc

from featurestore.maintenance.inspect import all_tables
from featurestore.maintenance.log_repair import (
    DAMAGED,
    LogFault,
    log_faults,
    mend,
    read_history,
    table_locations,
)
from featurestore.maintenance.recovery import recover_rows
from featurestore.maintenance.table_rows import TableRows
from featurestore.store import FeatureStore
from featurestore.tables.delta import Table
from featurestore.tables.files import FileReader
from syntax.errors import StoreError


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
        recovered: Rows by table that were appended again: of damaged entries, from data files that
            no entry mentions.
        left_out: Rows by table of such files that were not, and rows that a damaged entry had
            joined: a deletion that is whole in the log took them, or may have.
        needed: Parses that examples refer to and the store lacks; examples themselves have all
            that a trainer reads.
        unchecked: Tables that cannot be opened before their log is repaired.
    """

    is_done: bool
    log: list[LogFault] = field(default_factory=list)
    files: list[LostFile] = field(default_factory=list)
    recovered: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
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

    Damaged entries of logs become entries without changes, and their rows are appended again unless
    these may have been deleted (`featurestore.maintenance.recovery`). Files that cannot be read go
    to the folder ``_damaged`` of their table. Writers must be stopped. A second run finds nothing
    more.

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
    mended = {fault.table for fault in report.log if fault.action == "replace"}
    for name, table in all_tables(store):
        # Read before files are taken out, which the log then says, too.
        history = read_history(table.location) if name in mended else None
        _repair_table(name, table, report, progress)
        if history is not None:
            recovered, left_out = recover_rows(name, table, history)
            report.recovered |= {name: recovered} if recovered else {}
            report.left_out |= {name: left_out} if left_out else {}
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
    reader, lost = TableRows(name, table), []
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


def _set_aside(table: Table, path: str) -> None:
    content = table.location.read(path)
    if content is not None:
        table.location.child(DAMAGED).write(path.replace("/", "__"), content)
        table.location.files.delete_file(path)


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
