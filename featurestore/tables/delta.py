"""One Delta table: created at its first append, appended to exactly once, read by file."""

from __future__ import annotations

import logging
import math
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from featurestore import records
from featurestore.tables.compaction import FILE_BYTES, TIERS, Join, joins, to_sort
from featurestore.tables.data_files import partitions_of, write_files
from featurestore.tables.file_cache import FileCache
from featurestore.tables.files import FileReader
from featurestore.tables.layout import TableLayout
from featurestore.tables.location import Location
from featurestore.tables.log import LOG, entry_name, open_table, reason, sync_commits
from featurestore.tables.snapshot import (
    DataFile,
    Snapshot,
    files_of,
    in_partition,
    snapshot_of,
)
from syntax.errors import StoreBusyError, StoreError

_LOG: Final = logging.getLogger(__name__)

ATTEMPTS: Final = 12
"""Tries of one commit before `StoreBusyError`; with the waits below, about six seconds."""

_PASSES: Final = 4
"""Times that a compaction looks for files to join: joined ones may fit together."""

JOIN_EVERY: Final = 100
"""The writer of a version that is a multiple of this joins small files, if there are many."""

_MANY: Final = 50

_SORT_MEMORY: Final = "1GB"
"""Memory in which a partition is sorted; the rest goes to temporary files."""


class Table:
    """A Delta table at a location; it need not exist yet.

    The object holds no handle, so threads and processes may share a location freely: each
    operation opens the table itself.

    Args:
        on_create: Called before the table is made.
        made: Cache for what takes long to make from the table, if any.
    """

    def __init__(
        self,
        location: Location,
        layout: TableLayout,
        on_create: Callable[[], None],
        made: FileCache | None = None,
    ) -> None:
        self.location = location
        self.layout = layout
        self._on_create = on_create
        self.made = made

    def open(self, version: int | None = None) -> DeltaTable | None:
        """A handle at a version (the newest by default); ``None`` if there is no table."""
        return open_table(self.location, version)

    def follow(self, handle: DeltaTable | None) -> DeltaTable | None:
        """The handle brought to the newest version; opened if there was none."""
        if handle is None:
            return self.open()
        try:
            handle.update_incremental()
        except (DeltaError, OSError) as error:
            raise StoreError(f"cannot read {self.location.uri}: {reason(error)}") from error
        return handle

    def snapshot(self, version: int | None = None) -> Snapshot:
        """The active files of a version; version -1 without files if there is no table."""
        handle = self.open(version)
        return Snapshot(-1, ()) if handle is None else snapshot_of(handle)

    def append(
        self, data: pa.Table, transaction: records.Transaction | None = None, row_group: int = 1024
    ) -> bool:
        """Append rows in one commit, durable on a local disk; create the table if it is missing.

        Returns ``False``, and writes nothing, if the table has the transaction already.

        Raises:
            StoreBusyError: Other writers kept winning; nothing was written.
        """
        added: list[AddAction] | None = None
        for wait in _waits():
            handle = self.open() or self._create()
            known = handle.version()
            if _is_applied(handle, transaction):
                return False
            if added is None:  # what lost to another writer is committed as it is
                added = self._written(data, row_group)
            try:
                # Through the handle that was checked: an append through a fresh one would be
                # accepted although a racing writer has just committed the same transaction.
                newest = self._commit(handle, added, transaction=transaction)
            except CommitFailedError:
                time.sleep(wait)
            else:
                if known // JOIN_EVERY < newest // JOIN_EVERY:
                    self._join_many(row_group)
                return True
        raise StoreBusyError(
            f"{ATTEMPTS} commits to {self.location.uri} lost to other writers; try again later"
        )

    def compact(self, row_group: int = 1024, file_bytes: int = FILE_BYTES) -> None:
        """Join the small files of each partition; older versions stay readable.

        Rows of newer files come first, and large files are left alone
        (`featurestore.tables.compaction`). A table without small files gets no new version.

        Raises:
            StoreBusyError: Others kept winning; what was joined stays joined.
        """
        for _ in range(_PASSES):
            files = self.snapshot().files
            chosen = joins(files, file_bytes)
            if not chosen:
                return
            self._join(files, chosen, row_group)

    def sort(self, column: str, row_group: int = 1024, file_bytes: int = FILE_BYTES) -> None:
        """As `compact`; partitions that have only small files are sorted by a column."""
        for _ in range(_PASSES):
            files = self.snapshot().files
            for values in map(dict, to_sort(files, file_bytes)):
                own = in_partition(files, values)
                rows = self._sorted(own, column, row_group)
                new = write_files(self.location, self.layout, values, rows, row_group, file_bytes)
                self.swap(own, new)
        self.compact(row_group, file_bytes)

    def _sorted(self, files: Sequence[DataFile], column: str, row_group: int) -> Iterator[pa.Table]:
        import duckdb  # late: most who open a table sort none

        batches = (batch for x in files for rows in self._rows(x) for batch in rows.to_batches())
        with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
            connection.execute(f"set memory_limit = '{_SORT_MEMORY}'")
            connection.execute(f"set temp_directory = {quoted(folder)}")
            unsorted = pa.RecordBatchReader.from_batches(self.layout.stored_schema, batches)
            rows = connection.from_arrow(unsorted).order(f'"{column}"')
            for batch in rows.to_arrow_reader(row_group):
                yield pa.Table.from_batches([batch])

    def _join(self, files: Sequence[DataFile], chosen: Sequence[Join], row_group: int) -> None:
        for join in chosen:
            for group in join.groups(files):
                rows = (part for file in group for part in self._rows(file))
                part = dict(join.part)
                self.swap(group, write_files(self.location, self.layout, part, rows, row_group))

    def _join_many(self, row_group: int) -> None:
        try:
            files = self.snapshot().files
            # Not to the last tier: this writer has other things to do.
            self._join(files, joins(files, tiers=TIERS - 1, least=_MANY), row_group)
        except StoreBusyError:
            _LOG.info("another writer came first; files of %s stay small", self.location.uri)
        except StoreError as error:
            _LOG.warning("cannot join files of %s: %s", self.location.uri, error)

    def replace(
        self,
        read: Callable[[], pa.Table],
        column: str,
        partition: Mapping[str, str] | None = None,
        row_group: int = 1024,
    ) -> None:
        """Put rows in the place of all that have the same values in a key column, in one commit.

        ``read`` reads the newest version, anew for each try, so that what is deleted meanwhile
        stays deleted; each of its rows has a key of its own, and partition columns. Only rows in
        ``partition`` are replaced.

        Raises:
            StoreBusyError: Other writers kept winning; nothing was changed.
        """
        for _ in range(ATTEMPTS):
            files = in_partition(self.snapshot().files, partition or {})
            rows = read()
            removed, added = self.without(files, column, rows[column], row_group)
            for values, own in partitions_of(rows, self.layout.partition_by):
                added += write_files(self.location, self.layout, values, [own], row_group)
            if self.swap(removed, added):
                return
        raise self._busy()

    def delete(self, column: str, keys: Sequence[str], row_group: int = 1024) -> None:
        """Remove the rows that have one of these values in a key column, in one commit.

        Raises:
            StoreBusyError: Other writers kept winning; nothing was changed.
        """
        gone = pa.array(keys, pa.string())
        for _ in range(ATTEMPTS):
            if self.swap(*self.without(self.snapshot().files, column, gone, row_group)):
                return
        raise self._busy()

    def without(
        self, files: Iterable[DataFile], column: str, keys: pa.Array, row_group: int
    ) -> tuple[list[DataFile], list[AddAction]]:
        """The files that have rows with keys, and new ones with their other rows."""
        reader, removed, added = FileReader(self.location), [], []
        for file in files:
            if column in file.partition:
                has_any = pc.is_in(pa.scalar(file.partition[column]), keys).as_py()
            else:
                values = reader.columns(file.path, [column])[column]
                has_any = pc.any(pc.is_in(values, keys)).as_py()
            if not has_any:
                continue
            removed.append(file)
            if column not in file.partition:
                rows = (
                    part.filter(pc.invert(pc.is_in(part[column], keys)))
                    for part in self._rows(file)
                )
                added += write_files(self.location, self.layout, file.partition, rows, row_group)
        return removed, added

    def _rows(self, file: DataFile) -> Iterator[pa.Table]:
        reader = FileReader(self.location, keep_open=1)
        for group in range(len(reader.row_group_starts(file.path)) - 1):
            yield reader.row_group(file.path, group, self.layout.stored_schema.names)

    def _written(self, data: pa.Table, row_group: int) -> list[AddAction]:
        for name in data.column_names:
            if name not in self.layout.nullable and data[name].null_count:
                raise StoreError(f"{name} is null in rows for {self.location.uri}; it never may be")
        return [
            added
            for values, rows in partitions_of(data, self.layout.partition_by)
            for added in write_files(self.location, self.layout, values, [rows], row_group)
        ]

    def swap(self, removed: Sequence[DataFile], added: Sequence[AddAction]) -> bool:
        """Put new files in the place of others, in one commit.

        Appends, and changes of other files, may come before it: nothing is read or written again
        for them. Returns ``False``, and changes nothing, if some of the others are out of use.

        Raises:
            StoreBusyError: Others kept winning; nothing was changed.
        """
        if not removed and not added:
            return True
        for wait in _waits():
            handle = self.open()
            if handle is None:
                return False
            active = {file.path for file in files_of(handle)}
            if not active.issuperset(file.path for file in removed):
                return False
            try:
                self._commit(handle, added, removed)
            except CommitFailedError:
                time.sleep(wait)
            else:
                return True
        raise self._busy()

    def _busy(self) -> StoreBusyError:
        return StoreBusyError(
            f"{ATTEMPTS} changes of {self.location.uri} lost to other writers; try again later, or "
            "stop the writers first"
        )

    def _commit(
        self,
        handle: DeltaTable,
        added: Sequence[AddAction],
        removed: Sequence[DataFile] = (),
        transaction: records.Transaction | None = None,
    ) -> int:
        """Commit files; return the newest version afterwards.

        The table library refuses what removes files if any were removed since the handle was
        opened, and what adds files, too, unless nothing else happened: whoever loses tries again.
        """
        known, now = handle.version(), int(time.time() * 1000)
        gone = [RemoveAction(x.path, True, now, x.size, dict(x.partition)) for x in removed]
        applied = None
        if transaction is not None:
            applied = [Transaction(transaction.app_id, transaction.version)]
        try:
            handle.create_write_transaction(
                [*added, *gone],
                "append",
                handle.schema(),
                handle.metadata().partition_columns,
                commit_properties=CommitProperties(app_transactions=applied),
            )
            handle.update_incremental()
        except CommitFailedError:
            raise
        except (DeltaError, OSError) as error:
            raise StoreError(f"cannot write to {self.location.uri}: {reason(error)}") from error
        newest = handle.version()
        if self.location.is_local:
            sync_commits(self.location, known + 1, self._version_of(added, known + 1, newest))
        return newest

    def _version_of(self, added: Sequence[AddAction], first: int, newest: int) -> int:
        """The version, of those since ``first``, that added files; ``newest`` if none are named."""
        log = self.location.child(LOG)
        names = [one.path.rpartition("/")[2].encode() for one in added[:1]]
        found = (
            version
            for version in range(first, newest)
            if any(name in (log.read(entry_name(version)) or b"") for name in names)
        )
        return next(found, newest)

    def vacuum(self, keep: Sequence[int], hours: float, dry_run: bool) -> list[str]:
        """Delete the files that neither the newest version nor those to keep refer to.

        Files that went out of use, or that no version referred to, less than ``hours`` ago stay
        too: a reader or a commit may be at them. Less than an hour spares all that no version
        refers to, which commits under way may have written. Returns paths below the table.
        """
        handle = self.open()
        if handle is None:
            return []
        try:
            return handle.vacuum(
                retention_hours=math.ceil(hours),
                dry_run=dry_run,
                enforce_retention_duration=False,
                full=hours >= 1,  # else only files that a version has removed
                keep_versions=sorted({version for version in keep if version <= handle.version()}),
            )
        except (DeltaError, OSError) as error:
            raise StoreError(f"cannot vacuum {self.location.uri}: {reason(error)}") from error

    def _create(self) -> DeltaTable:
        self._on_create()
        try:
            return DeltaTable.create(
                self.location.uri,
                self.layout.described_schema(),
                mode="ignore",
                description=self.layout.description,
                partition_by=list(self.layout.partition_by),
                configuration=self.layout.table_properties(),
                storage_options=dict(self.location.options),
                raise_if_key_not_exists=False,
            )
        except Exception as error:  # the class itself is what a refused schema raises
            handle = self.open()  # another writer may have created it
            if handle is None:
                raise StoreError(f"cannot create {self.location.uri}: {reason(error)}") from error
            return handle


def _waits() -> Iterator[float]:
    """Seconds to wait after each lost commit: exponential, capped, with jitter."""
    for attempt in range(ATTEMPTS):
        # Processes forked from one share the state of `random`, and would wait alike.
        yield random.SystemRandom().uniform(0.5, 1.0) * min(1.0, 0.02 * 2**attempt)


def quoted(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def _is_applied(handle: DeltaTable, transaction: records.Transaction | None) -> bool:
    if transaction is None:
        return False
    applied = handle.transaction_version(transaction.app_id)
    return applied is not None and applied >= transaction.version
