"""One Delta table: created at its first append, appended to exactly once, read by file."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa
from deltalake import (
    CommitProperties,
    DeltaTable,
    Transaction,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError

from featurestore import records
from featurestore.tables.attempts import ATTEMPTS, reason, waits
from featurestore.tables.compaction import FILE_BYTES, TIERS, Join, filters, joins, to_sort
from featurestore.tables.file_cache import FileCache
from featurestore.tables.layout import COMPACTION_PROPERTY, TableLayout
from featurestore.tables.location import Location
from featurestore.tables.log import sync_commits
from featurestore.tables.opening import open_table
from featurestore.tables.pause import Pause, Pauses
from featurestore.tables.snapshot import Snapshot, files_of, snapshot_of
from syntax.errors import StoreBusyError, StoreError

_LOG: Final = logging.getLogger(__name__)

_PASSES: Final = 4
"""Times that a compaction looks for files to join: those that were joined may fit together. Not
without end, because writers go on."""

JOIN_EVERY: Final = 100
"""The writer of a version that is a multiple of this joins small files, if there are many."""

_MANY: Final = 50
"""Small files in a partition that its writers join."""

_SORT_BYTES: Final = 1 << 30
"""Memory in which a partition is sorted; what does not fit goes to temporary files."""


class Table:
    """A Delta table at a location; it need not exist yet.

    The object holds no handle, so threads and processes may share a location freely: each
    operation opens the table itself.

    Args:
        location: Folder of the table.
        layout: How it is written.
        on_create: Called before the table is made.
        before_write: Called before each change; it may refuse by raising.
        made: Where this machine keeps what takes long to make from the table, if anywhere.
    """

    def __init__(
        self,
        location: Location,
        layout: TableLayout,
        on_create: Callable[[], None],
        before_write: Callable[[], None] = lambda: None,
        made: FileCache | None = None,
    ) -> None:
        self.location = location
        self.layout = layout
        self._on_create = on_create
        self.before_write = before_write
        self.made = made
        self._pauses = Pauses()

    def open(self, version: int | None = None) -> DeltaTable | None:
        """A handle at a version (the newest by default); ``None`` if there is no table.

        Raises:
            UnknownDatasetError: The table has no such version.
            StoreError: The log cannot be read.
        """
        return open_table(self.location, version)

    def follow(self, handle: DeltaTable | None) -> DeltaTable | None:
        """The handle brought to the newest version; opened if there was none.

        Raises:
            StoreError: The log cannot be read.
        """
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
        """Append rows in one commit; create the table first if it is missing.

        On a local disk it returns once the disk holds the commit.

        Args:
            data: The rows.
            transaction: Makes the append idempotent: if the table has it, nothing is written.
            row_group: Rows in a Parquet row group, at most.

        Returns:
            Whether the rows were written now; ``False`` if the transaction was there already.

        Raises:
            StoreBusyError: Other writers kept winning; nothing was written.
            StoreError: The files cannot be written.
        """
        self.before_write()
        for wait in waits():
            handle = self._pauses.wait(self.open)
            known = -1 if handle is None else handle.version()
            handle = self._create() if handle is None else handle
            if _is_applied(handle, transaction):
                return False
            try:
                # Through the handle that was checked: an append through a fresh one would be
                # accepted although a racing writer has just committed the same transaction.
                self._write(handle, data, transaction, row_group)
            except CommitFailedError:
                time.sleep(wait)
            else:
                sync_commits(self.location, known + 1, handle.version())
                if handle.version() % JOIN_EVERY == 0:
                    self._join_many(handle, row_group)
                return True
        raise StoreBusyError(
            f"{ATTEMPTS} commits to {self.location.uri} lost to other writers; try again later"
        )

    def compact(self, row_group: int = 1024, file_bytes: int = FILE_BYTES) -> None:
        """Join the small files of each partition; older versions stay readable.

        Rows of newer files come first, and large files are left alone
        (`featurestore.tables.compaction`). A table without small files gets no new version.

        Args:
            row_group: Rows in a Parquet row group, at most.
            file_bytes: Bytes of a large file, about.

        Raises:
            StoreBusyError: Others kept winning; what was joined stays joined.
            StoreError: The files cannot be read or written.
        """
        for _ in range(_PASSES):
            if not joins(self.snapshot().files, file_bytes):
                return
            self._rewrite(
                lambda handle: self._join(handle, joins(files_of(handle), file_bytes), row_group)
            )

    def sort(self, column: str, row_group: int = 1024, file_bytes: int = FILE_BYTES) -> None:
        """As `compact`; partitions that have only small files are sorted by a column."""
        if to_sort(self.snapshot().files, file_bytes):
            self._rewrite(lambda handle: self._sort(handle, column, row_group, file_bytes))
        self.compact(row_group, file_bytes)

    def _sort(self, handle: DeltaTable, column: str, row_group: int, file_bytes: int) -> None:
        self._claim(handle)
        for part in to_sort(files_of(handle), file_bytes):
            # A curve through one column is that column's order.
            handle.optimize.z_order(
                [column],
                filters(part),
                file_bytes,
                max_spill_size=_SORT_BYTES,
                writer_properties=self.layout.writer(row_group),
            )

    def _join(self, handle: DeltaTable, chosen: Sequence[Join], row_group: int) -> None:
        if chosen:
            self._claim(handle)
        for join in chosen:
            handle.optimize.compact(
                filters(join.part), join.target, writer_properties=self.layout.writer(row_group)
            )

    def _claim(self, handle: DeltaTable) -> None:
        """Make compactions fail that are under way.

        The table library commits two that join the same files, so that each row is there twice. It
        refuses a commit if the table's properties have changed since the handle's version: the
        handle must be the one that joins.
        """
        claim = {COMPACTION_PROPERTY: str(handle.version())}
        handle.alter.set_table_properties(claim, raise_if_not_exists=False)

    def _join_many(self, handle: DeltaTable, row_group: int) -> None:
        """Join small files where there are many, unless another writer does."""
        known = handle.version()
        # Not to the last tier: this writer has other things to do.
        chosen = joins(files_of(handle), tiers=TIERS - 1, least=_MANY)
        try:
            self._join(handle, chosen, row_group)
            sync_commits(self.location, known + 1, handle.version())
        except CommitFailedError:
            _LOG.info("another writer came first; files of %s stay small", self.location.uri)
        except (DeltaError, OSError, StoreError) as error:
            _LOG.warning("cannot join files of %s: %s", self.location.uri, reason(error))

    def replace(
        self,
        read: Callable[[], pa.Table],
        column: str,
        partition: Mapping[str, str] | None = None,
        row_group: int = 1024,
    ) -> None:
        """Put rows in the place of all that have the same values in a key column, in one commit.

        Args:
            read: The rows, each with a key of its own; partition columns included. It reads the
                newest version, anew for each try, so that what is deleted meanwhile stays deleted.
            column: The key column.
            partition: Look for rows to replace only where partition columns have these values.
            row_group: Rows in a Parquet row group, at most.

        Raises:
            StoreBusyError: Other writers kept winning; nothing was changed.
            StoreError: The files cannot be read or written.
        """

        def overwrite(handle: DeltaTable) -> None:
            # After the handle was opened: if another version comes between, the commit is refused.
            rows = read()
            if not rows.num_rows:
                return
            keys = ", ".join(map(quoted, rows[column].to_pylist()))
            where = [f"{name} = {quoted(value)}" for name, value in (partition or {}).items()]
            write_deltalake(
                handle,
                rows,
                mode="overwrite",
                predicate=" and ".join([f"{column} in ({keys})", *where]),
                writer_properties=self.layout.writer(row_group),
            )

        self._rewrite(overwrite)

    def delete(self, column: str, keys: Sequence[str], row_group: int = 1024) -> None:
        """Remove the rows that have one of these values in a key column, in one commit.

        Args:
            column: The key column.
            keys: The values.
            row_group: Rows in a Parquet row group, at most.

        Raises:
            StoreBusyError: Other writers kept winning; nothing was changed.
            StoreError: The files cannot be read or written.
        """
        gone = pa.table({column: pa.array(keys, pa.string())})
        # A join by hash: a predicate that lists the keys is slower the more of them there are.
        self._rewrite(
            lambda handle: (
                handle.merge(
                    gone,
                    predicate=f"kept.{column} = gone.{column}",
                    source_alias="gone",
                    target_alias="kept",
                    writer_properties=self.layout.writer(row_group),
                )
                .when_matched_delete()
                .execute()
            )
        )

    def vacuum(self, keep: Sequence[int], hours: float, dry_run: bool) -> list[str]:
        """Delete the files that neither the newest version nor those to keep refer to.

        Args:
            keep: Versions that stay readable.
            hours: Files that went out of use, or that no version referred to, less than so long
                ago stay too: a reader or a commit may be at them. Less than an hour spares all
                that no version refers to, which commits under way may have written.
            dry_run: Delete nothing.

        Returns:
            Paths of the files below the table.

        Raises:
            StoreError: The table cannot be read, or a file not deleted.
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

    def _rewrite(self, change: Callable[[DeltaTable], object]) -> None:
        self.before_write()
        self.change(change)

    def change(self, change: Callable[[DeltaTable], object]) -> None:
        """Change the newest version; tried again when another writer wins. No table, no change.

        On a local disk it returns once the disk holds the change. If others win several times,
        appends wait for it (`featurestore.tables.pause`).

        Raises:
            StoreBusyError: Others kept winning.
            StoreError: The files cannot be read or written.
        """
        pause, lost = Pause(), ""
        for attempt, wait in enumerate(waits()):
            handle = self.open()
            if handle is None:
                return
            known = handle.version()
            try:
                with pause.around(handle, attempt):
                    change(handle)
                sync_commits(self.location, known + 1, handle.version())
            except CommitFailedError as error:
                lost = reason(error)
                time.sleep(wait)
            except (DeltaError, OSError) as error:
                raise StoreError(f"cannot rewrite {self.location.uri}: {reason(error)}") from error
            else:
                return
        raise StoreBusyError(
            f"{ATTEMPTS} changes of {self.location.uri} lost to other writers ({lost}); try again "
            "later, or stop the writers first"
        )

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

    def _write(
        self,
        handle: DeltaTable,
        data: pa.Table,
        transaction: records.Transaction | None,
        row_group: int,
    ) -> None:
        applied = None
        if transaction is not None:
            applied = [Transaction(transaction.app_id, transaction.version)]
        try:
            write_deltalake(
                handle,
                data,
                mode="append",
                writer_properties=self.layout.writer(row_group),
                commit_properties=CommitProperties(app_transactions=applied),
            )
        except CommitFailedError:
            raise
        except (DeltaError, OSError) as error:
            raise StoreError(f"cannot append to {self.location.uri}: {reason(error)}") from error


def quoted(text: str) -> str:
    """A string as an SQL literal."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def _is_applied(handle: DeltaTable, transaction: records.Transaction | None) -> bool:
    if transaction is None:
        return False
    applied = handle.transaction_version(transaction.app_id)
    return applied is not None and applied >= transaction.version
