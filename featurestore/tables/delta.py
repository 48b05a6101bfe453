"""One Delta table: created at its first append, appended to exactly once, read by file."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import (
    CommitProperties,
    DeltaTable,
    Transaction,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from featurestore import records
from featurestore.tables.attempts import ATTEMPTS, reason, waits
from featurestore.tables.file_cache import FileCache
from featurestore.tables.layout import TableLayout
from featurestore.tables.location import Location
from featurestore.tables.log import sync_commits
from featurestore.tables.snapshot import Snapshot, snapshot_of
from syntax.errors import StoreBusyError, StoreError, UnknownDatasetError

FILE_BYTES: Final = 100 << 20
"""Approximate bytes of a file that joins others."""

Part = tuple[tuple[str, str], ...]
"""Names and values of partition columns."""


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
            handle = self.open()
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
                self._sync(known + 1, handle.version())
                return True
        raise StoreBusyError(
            f"{ATTEMPTS} commits to {self.location.uri} lost to other writers; try again later"
        )

    def _sync(self, first: int, last: int) -> None:
        if self.location.is_local:
            try:
                sync_commits(Path(self.location.uri), first, last)
            except OSError as error:
                raise StoreError(f"cannot sync {self.location.uri}: {error}") from error

    def compact(self, row_group: int = 1024) -> None:
        """Join the small files of each partition; older versions stay readable.

        Args:
            row_group: Rows in a Parquet row group, at most.

        Raises:
            StoreBusyError: Another compaction kept winning; nothing was changed.
            StoreError: The files cannot be read or written.
        """
        writer = self.layout.writer(row_group)
        self._rewrite(lambda handle: handle.optimize.compact(writer_properties=writer))

    def sort(self, column: str, row_group: int = 1024) -> None:
        """Join the files of each partition and sort its rows by a column.

        Partitions whose files are as few as they can be are left alone. Arguments and errors are
        those of `compact`.
        """
        for part in _scattered(self.snapshot()):
            self._sort_part(part, column, row_group)

    def _sort_part(self, part: Part, column: str, row_group: int) -> None:
        writer = self.layout.writer(row_group)
        chosen = [(name, "=", value) for name, value in part]
        self._rewrite(
            # A curve through one column is that column's order.
            lambda handle: handle.optimize.z_order(
                [column], chosen, FILE_BYTES, writer_properties=writer
            )
        )

    def replace(
        self,
        rows: pa.Table,
        column: str,
        partition: Mapping[str, str] | None = None,
        row_group: int = 1024,
    ) -> None:
        """Put rows in the place of all that have the same values in a key column, in one commit.

        Args:
            rows: The rows, each with a key of its own; partition columns included.
            column: The key column.
            partition: Look for rows to replace only where partition columns have these values.
            row_group: Rows in a Parquet row group, at most.

        Raises:
            StoreBusyError: Other writers kept winning; nothing was changed.
            StoreError: The files cannot be read or written.
        """
        keys = ", ".join(map(quoted, rows[column].to_pylist()))
        where = [f"{name} = {quoted(value)}" for name, value in (partition or {}).items()]
        predicate = " and ".join([f"{column} in ({keys})", *where])
        self._rewrite(
            lambda handle: write_deltalake(
                handle,
                rows,
                mode="overwrite",
                predicate=predicate,
                writer_properties=self.layout.writer(row_group),
            )
        )

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
                ago stay too: a reader or a commit may be at them.
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
                full=True,
                keep_versions=sorted({version for version in keep if version <= handle.version()}),
            )
        except (DeltaError, OSError) as error:
            raise StoreError(f"cannot vacuum {self.location.uri}: {reason(error)}") from error

    def _rewrite(self, change: Callable[[DeltaTable], object]) -> None:
        self.before_write()
        self.change(change)

    def change(self, change: Callable[[DeltaTable], object]) -> None:
        """Change the newest version; tried again when another writer wins. No table, no change.

        Raises:
            StoreBusyError: Others kept winning.
            StoreError: The files cannot be read or written.
        """
        for wait in waits():
            handle = self.open()
            if handle is None:
                return
            try:
                change(handle)
            except CommitFailedError:
                time.sleep(wait)
            except (DeltaError, OSError) as error:
                raise StoreError(f"cannot rewrite {self.location.uri}: {reason(error)}") from error
            else:
                return
        raise StoreBusyError(f"{self.location.uri} is being compacted elsewhere; try again later")

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


def open_table(location: Location, version: int | None = None) -> DeltaTable | None:
    """A handle at a version (the newest by default); ``None`` if there is no table.

    Raises:
        UnknownDatasetError: The table has no such version.
        StoreError: The log cannot be read.
    """
    try:
        newest = DeltaTable(location.uri, storage_options=dict(location.options))
        if version is None or version == newest.version():
            return newest
        last = newest.version()
        if not 0 <= version <= last:
            raise UnknownDatasetError(
                f"{location.uri} has no version {version}; it has 0 to {last}",
                version=version,
                newest=last,
            )
        return DeltaTable(location.uri, version=version, storage_options=dict(location.options))
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise StoreError(f"cannot read {location.uri}: {reason(error)}") from error


def _scattered(snapshot: Snapshot) -> list[Part]:
    """The partitions that have more files than their bytes need."""
    sizes: dict[Part, list[int]] = {}
    for file in snapshot.files:
        sizes.setdefault(tuple(file.partition.items()), []).append(file.size)
    return [part for part, own in sizes.items() if len(own) > 1 + sum(own) // FILE_BYTES]


def quoted(text: str) -> str:
    """A string as an SQL literal."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def _is_applied(handle: DeltaTable, transaction: records.Transaction | None) -> bool:
    if transaction is None:
        return False
    applied = handle.transaction_version(transaction.app_id)
    return applied is not None and applied >= transaction.version
