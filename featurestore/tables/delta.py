"""One Delta table: created at its first append, appended to exactly once, read by file."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import (
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from featurestore import records
from featurestore.tables.attempts import ATTEMPTS, reason, waits
from featurestore.tables.location import Location
from featurestore.tables.log import sync_commits
from featurestore.tables.snapshot import Snapshot, snapshot_of
from syntax.errors import StoreBusyError, StoreError, UnknownDatasetError

_PROPERTIES: Final = {
    # Pinned versions are read back years later: the log is never shortened behind our back.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.deletedFileRetentionDuration": "interval 36500 days",
}


FORMAT_PROPERTY: Final = "parsebank.format"
"""Property of a table: the format whose columns all of its files have; 1 if missing."""


@dataclass(frozen=True)
class TableLayout:
    """How a table is written.

    Attributes:
        schema: Columns.
        partition_by: Partition columns.
        statistics: Columns whose minimum and maximum go into the log.
        plain: Columns written without a dictionary (blobs and unique keys); no lists.
        hidden: Columns that SQL does not show: what they hold, others hold too.
        format: Format of the store that these columns came with; no older store takes them.
        properties: Further table properties, such as ``parsebank.dataset``.
    """

    schema: pa.Schema
    partition_by: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    format: int = 1
    properties: Mapping[str, str] = field(default_factory=dict)

    def table_properties(self) -> dict[str, str]:
        """Properties of the table as it is created."""
        columns = ",".join(self.statistics or (self.schema.names[0],))
        ours = {FORMAT_PROPERTY: str(self.format), **self.properties}
        return {**_PROPERTIES, "delta.dataSkippingStatsColumns": columns, **ours}

    def writer(self, row_group: int) -> WriterProperties:
        """Parquet options: zstd level 1, no dictionary where it only costs time."""
        plain = ColumnProperties(dictionary_enabled=False, statistics_enabled="NONE")
        bounded = ColumnProperties(dictionary_enabled=True, statistics_enabled="CHUNK")
        # No reader uses the bounds of lists and blobs, and in small row groups they are a third
        # of the footer. What lies in a list cannot be named here: it has the default.
        bare = ColumnProperties(dictionary_enabled=True, statistics_enabled="NONE")
        flat = [column.name for column in self.schema if not pa.types.is_nested(column.type)]
        return WriterProperties(
            compression="ZSTD",
            compression_level=1,
            max_row_group_size=row_group,
            default_column_properties=bare,
            column_properties=dict.fromkeys(flat, bounded) | dict.fromkeys(self.plain, plain),
        )


class Table:
    """A Delta table at a location; it need not exist yet.

    The object holds no handle, so threads and processes may share a location freely: each
    operation opens the table itself.

    Args:
        location: Folder of the table.
        layout: How it is written.
        on_create: Called before the table is made.
        before_write: Called before each change; it may refuse by raising.
    """

    def __init__(
        self,
        location: Location,
        layout: TableLayout,
        on_create: Callable[[], None],
        before_write: Callable[[], None] = lambda: None,
    ) -> None:
        self.location = location
        self.layout = layout
        self._on_create = on_create
        self.before_write = before_write

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

    def compact(self, sort_by: str | None = None, row_group: int = 1024) -> None:
        """Join the small files of each partition; older versions stay readable.

        Args:
            sort_by: Sort the rows of each partition by this column.
            row_group: Rows in a Parquet row group, at most.

        Raises:
            StoreBusyError: Another compaction kept winning; nothing was changed.
            StoreError: The files cannot be read or written.
        """
        writer = self.layout.writer(row_group)
        if sort_by is None:
            self._rewrite(lambda handle: handle.optimize.compact(writer_properties=writer))
        else:
            # A curve through one column is that column's order.
            self._rewrite(
                lambda handle: handle.optimize.z_order([sort_by], writer_properties=writer)
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
                self.layout.schema,
                mode="ignore",
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


def quoted(text: str) -> str:
    """A string as an SQL literal."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def _is_applied(handle: DeltaTable, transaction: records.Transaction | None) -> bool:
    if transaction is None:
        return False
    applied = handle.transaction_version(transaction.app_id)
    return applied is not None and applied >= transaction.version
