"""Repair of a store."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from featurestore.maintenance.forget import copy_log, cut_log
from featurestore.maintenance.inspect import all_tables
from featurestore.maintenance.log_repair import (
    LogFault,
    log_faults,
    lost_rewrites,
    mend,
    table_locations,
    unlisted_files,
)
from featurestore.maintenance.rules import check_parses
from featurestore.store import FeatureStore
from featurestore.tables.data_files import write_files
from featurestore.tables.delta import Table
from featurestore.tables.encode.columns import empty_table
from featurestore.tables.encode.parses import decode_parses, encode_parses, unpack_parses
from featurestore.tables.files import FileReader, UnreadableFileError
from featurestore.tables.layout import TableLayout
from featurestore.tables.location import Location
from featurestore.tables.log import CHECKPOINT, LOG, log_names, versions_of
from featurestore.tables.parses import ROW_GROUP
from featurestore.tables.schema import DROPS, FINGERPRINTS, PARSE_COLUMNS, PARSES, PINS
from featurestore.tables.snapshot import DataFile
from syntax.errors import StoreError, UnknownDatasetError

_KEPT: Final = {"parses": PARSES, "drops": DROPS, "fingerprints": FINGERPRINTS, "pins": PINS}
"""Tables of whose damaged files what is whole is kept. Other rows come from the next backfill."""

_KEYS: Final = {"parses": "key", "fingerprints": None, "pins": None}
"""Column by which rows are deleted; any other table has ``example_key``."""

_NAMES: Final = ("key", "example_id", "example_key", "fingerprint", "name")
"""Columns that may name lost rows; the first that a table has is used."""


@dataclass(frozen=True)
class LostFile:
    """A data file that is damaged or gone.

    Attributes:
        rows: Rows that the log says it has.
        kept: Rows that are whole, or have a whole copy; a repair writes them again.
        lost: Keys or names of the others, where these can still be read.
    """

    table: str
    path: str
    rows: int
    kept: int
    message: str
    lost: list[str]


@dataclass(frozen=True)
class NeededParse:
    """A parse that an example refers to and the store lacks; parsing its text makes it again."""

    key: str
    parser: str
    lang: str
    text: str


@dataclass
class Repair:
    """Result of a repair, or of a dry run the expected one.

    Attributes:
        deleted: Keys by table that a whole entry of a log deleted, and that the loss of an earlier
            one, which had joined files, brought back: a repair deletes them again.
        unlisted: Data files by table that no version has: of writers that were stopped, or of
            entries that are lost. A vacuum deletes them.
    """

    is_done: bool
    log: list[LogFault] = field(default_factory=list)
    files: list[LostFile] = field(default_factory=list)
    deleted: dict[str, list[str]] = field(default_factory=dict)
    needed: list[NeededParse] = field(default_factory=list)
    unlisted: dict[str, list[str]] = field(default_factory=dict)

    @property
    def is_sound(self) -> bool:
        return not (self.log or self.files or self.deleted)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def repair_store(
    store: FeatureStore, dry_run: bool = True, watch: Callable[[int], None] | None = None
) -> Repair:
    """Find what is damaged; unless it is a dry run, take it out and write again what is whole.

    Damaged entries of logs become entries without changes; damaged files leave their tables, and
    a vacuum then deletes them. Of a parse, which lies in its file twice, one whole copy is enough.
    All else comes back with the next backfill. Stop the writers if a log is damaged. A repair that
    was killed may be repeated. ``watch`` is called with numbers of rows that were checked.
    """
    report, progress = Repair(not dry_run), watch or (lambda _: None)
    # Pins first: they say which versions of a dataset stay where its log is cut.
    found = sorted(table_locations(store.root.location), key=lambda table: table[0] != "pins")
    for name, location in found:
        report.log += log_faults(name, location)
    lost = [fault for fault in report.log if fault.action == "restore"]
    if lost and not dry_run:
        raise StoreError(
            f"{lost[0].table}: {lost[0].file}: {lost[0].message}; nothing says what was in it, and "
            "a version needs it. Restore the table from a backup"
        )
    beyond = {fault.table for fault in lost}
    with ExitStack() as stack:
        tables = {}
        for name, location in found:
            if name in beyond:
                continue
            faults = [fault for fault in report.log if fault.table == name]
            log = location
            if faults and dry_run:
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                log = _mended_copy(location, faults, folder)
            elif faults:
                _mend(store, name, location, faults)
            tables[name] = _TableRepair(name, location, log)
            report.files += tables[name].repair(dry_run, progress)
        changed = {} if dry_run else dict(all_tables(store))
        for table in tables.values():
            if deleted := table.delete_again(None if dry_run else changed[table.name]):
                report.deleted[table.name] = deleted
            if unlisted := unlisted_files(table.location, table.log):
                report.unlisted[table.name] = unlisted
        report.needed = list(_needed(tables))
    return report


class _TableRepair:
    """A table under repair, with a log without damage."""

    def __init__(self, name: str, location: Location, log: Location) -> None:
        self.name, self.location = name, location
        self.key = _KEYS.get(name, "example_key")
        self.table = Table(log, _KEPT.get(name, TableLayout(pa.schema([]))), lambda: None)
        self.log = log.child(LOG)
        self.files = self.table.snapshot().files
        self.reader = FileReader(location)
        self.kept: dict[str, pa.Table] = {}

    def repair(self, dry_run: bool, progress: Callable[[int], None]) -> Iterator[LostFile]:
        """Look at each file, and put what is whole in the place of damaged ones, in one commit."""
        removed, added = [], []
        for file in self.files:
            fault = self.reader.fault(file)
            progress(file.rows)
            if fault is None:
                continue
            rows, lost = self._whole(file)
            self.kept[file.path] = rows
            removed.append(file)
            if not dry_run and rows.num_rows:
                added += write_files(self.location, self.table.layout, {}, [rows], ROW_GROUP)
            yield LostFile(self.name, file.path, file.rows, rows.num_rows, str(fault), lost)
        if not dry_run and not self.table.swap(removed, added):
            raise StoreError(f"{self.location.uri} was changed meanwhile; repair it again")

    def delete_again(self, table: Table | None) -> list[str]:
        """Delete again the rows that a lost entry has brought back; return their keys.

        Without the lost entry, the files that it replaced are in use again. What later changes kept
        of its rows lies in newer files.
        """
        found: set[str] = set()
        for lost in lost_rewrites(self.log):
            moved = self._keys(lost.removed)
            active = self.table.snapshot().files
            old = [x for x in active if x.path in lost.older and moved & self._keys([x.path])]
            held = self._keys(file.path for file in active if file.path not in lost.older)
            found |= moved & self._keys(file.path for file in old) - held
            if table is not None and old:
                keys = pa.array(sorted(moved), pa.string())
                table.swap(*table.without(old, str(self.key), keys, ROW_GROUP))
        return sorted(found)

    def _keys(self, paths: Iterable[str]) -> set[str]:
        """Keys of the rows of files, of those that are whole and that no vacuum has deleted."""
        found: set[str] = set()
        for path in paths if self.key is not None else ():
            with suppress(UnreadableFileError):
                keys = self.reader.columns(path, [str(self.key)])[str(self.key)]
                found.update(filter(None, keys.to_pylist()))
        return found

    def columns(self, file: DataFile, columns: list[str]) -> pa.Table | None:
        """Columns of a file as they are after the repair; ``None`` if nothing is kept of it."""
        if file.path in self.kept:
            rows = self.kept[file.path]
            return rows.select(columns) if rows.num_rows else None
        return self.reader.columns(file.path, columns)

    def _whole(self, file: DataFile) -> tuple[pa.Table, list[str]]:
        """The rows of a damaged file that are whole, and the names of the others."""
        layout = _KEPT.get(self.name)
        kept = [] if layout is None else [empty_table(layout.schema)]
        lost: list[str] = []
        try:
            with self.location.files.open_input_file(file.path) as content:
                opened = pq.ParquetFile(content, page_checksum_verification=True)
                for number in range(opened.num_row_groups):
                    rows = None if layout is None else _whole_rows(opened, number, layout)
                    if rows is None:
                        lost += _names(opened, number)
                    else:
                        kept.append(rows)
        except (OSError, pa.ArrowException):
            pass  # nothing is left, or nothing more
        return pa.concat_tables(kept) if kept else pa.table({}), lost


def _whole_rows(file: pq.ParquetFile, group: int, layout: TableLayout) -> pa.Table | None:
    """The rows of a row group, if its pages, or those of one copy of each parse, are whole."""
    rows = _read(file, group, layout.schema.names)
    if layout is not PARSES:
        return None if rows is None else rows.cast(layout.schema)
    try:
        if rows is not None:
            rows = rows.cast(layout.schema)
        elif (packed := _read(file, group, ["key", "record"])) is not None:
            rows = encode_parses(unpack_parses(packed["key"].to_pylist(), packed["record"]))
        elif (columns := _read(file, group, PARSE_COLUMNS)) is not None:
            rows = encode_parses(decode_parses(columns))
        else:
            return None
        check_parses(rows)
    except Exception:  # damaged bytes may fail anywhere
        return None
    return rows


def _names(file: pq.ParquetFile, group: int) -> list[str]:
    for name in _NAMES:
        if name in file.schema_arrow.names:
            rows = _read(file, group, [name])
            return [] if rows is None else list(map(str, rows[name].to_pylist()))
    return []


def _read(file: pq.ParquetFile, group: int, columns: Iterable[str]) -> pa.Table | None:
    names = list(columns)
    try:
        rows = file.read_row_group(group, names, use_threads=False)
        rows.validate(full=True)
        return rows.select(names)
    except (OSError, pa.ArrowException, KeyError):
        return None


def _mend(store: FeatureStore, name: str, location: Location, faults: list[LogFault]) -> None:
    log = location.child(LOG)
    for fault in faults:
        if fault.action != "forget":
            mend(log, fault)
    if any(fault.action == "forget" for fault in faults):
        table = Table(location, TableLayout(pa.schema([])), lambda: None)
        last = max(int(fault.file[:20]) for fault in faults if fault.action == "forget")
        own = (pin for pin in store.pins.all().values() if f"datasets/{pin.table}" == name)
        kept = [pin.version for pin in own if _is_readable(table, pin.version)]
        cut_log(table, kept, last + 1, max(versions_of(log_names(log), CHECKPOINT)))


def _is_readable(table: Table, version: int) -> bool:
    try:
        table.open(version)
    except (StoreError, UnknownDatasetError):
        return False
    return True


def _mended_copy(location: Location, faults: list[LogFault], folder: str) -> Location:
    copy = copy_log(location.child(LOG), Location.of(folder).child(LOG))
    for fault in faults:
        if fault.action != "forget":
            mend(copy, fault)
    return Location.of(folder)


def _needed(tables: dict[str, _TableRepair]) -> Iterator[NeededParse]:
    found = []
    if parses := tables.get("parses"):
        found = [parses.columns(file, ["key"]) for file in parses.files]
    there = pa.array([], pa.string())
    if keys := [rows["key"] for rows in found if rows is not None]:
        there = pa.chunked_array([chunk for one in keys for chunk in one.chunks], pa.string())
    seen: set[str] = set()
    for name, table in tables.items():
        for file in table.files if name.startswith("datasets/") else ():
            rows = table.columns(file, ["parse_keys", "parser", "texts"])
            if rows is None:
                continue
            flat = pc.list_flatten(rows["parse_keys"]).unique()
            missing = set(flat.filter(pc.invert(pc.is_in(flat, there))).to_pylist()) - seen
            if not missing:
                continue
            for own, parser, texts in zip(*(c.to_pylist() for c in rows.columns), strict=True):
                for key, text in zip(own, texts, strict=True):
                    if key in missing and key not in seen:
                        seen.add(key)
                        yield NeededParse(key, parser, file.partition["lang"], text)
