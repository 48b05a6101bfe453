"""Reading chosen rows of Parquet files by row group, once their bytes are known to be right."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from featurestore.tables.data_files import is_intact, was_intact
from featurestore.tables.encode.columns import arrow_of
from featurestore.tables.location import Location
from syntax.errors import StoreError

if TYPE_CHECKING:
    from featurestore.tables.pins import Lease
    from featurestore.tables.snapshot import DataFile

_FOOTER_BYTES: Final = 64 << 20
"""Bytes of footers, as they lie in the files, kept in memory; there they take about ten times."""


@dataclass(frozen=True)
class _OpenFile:
    file: pq.ParquetFile
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, file: pq.ParquetFile) -> _OpenFile:
        footer = file.metadata
        sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        return cls(file, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


class UnreadableFileError(StoreError):
    """A data file has no readable content, however often it is read.

    Attributes:
        path: Path below the table; empty where a version of the table lacks several.
    """

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class FileGoneError(UnreadableFileError):
    """A file was vacuumed: a newer version of its table has its rows elsewhere, if at all."""


class DamagedFileError(UnreadableFileError):
    """A file is there, and its bytes are not those that were committed."""


class FileReader:
    """Reads the Parquet files below a location and remembers their footers.

    Files never change once written, so a footer stays true. The first look of a process at a local
    file compares all of its bytes with its name; each page that is read, wherever the file lies,
    is compared with its CRC. Safe for threads.

    Args:
        keep_open: Files that stay open for the next read; opening one costs more than a row.
        schema: Columns that read as null from files written before there were such columns.
        lease: Keeps the files; who reads for long calls `renew_lease` now and then.
        footer_bytes: Bytes of footers to remember, as they lie in the files.
    """

    def __init__(
        self,
        location: Location,
        keep_open: int = 0,
        schema: pa.Schema | None = None,
        lease: Lease | None = None,
        footer_bytes: int = _FOOTER_BYTES,
    ) -> None:
        self.location = location
        self._most_footer_bytes = footer_bytes
        self._lease = lease
        self._schema = schema or pa.schema([])
        self._keep_open = keep_open
        self._idle: OrderedDict[str, _OpenFile] = OrderedDict()
        self._footers: OrderedDict[str, pq.FileMetaData] = OrderedDict()
        self._footer_bytes = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[FileReader], tuple[Any, ...]]:
        kept = (self._keep_open, self._schema, self._lease, self._most_footer_bytes)
        return FileReader, (self.location, *kept)

    def renew_lease(self) -> None:
        """Keep a vacuum from deleting the files, for the next hours."""
        if self._lease is not None:
            self._lease.renew()

    def row_group_starts(self, path: str) -> NDArray[np.int64]:
        """First row of each row group, and the number of rows. *Shape:* (G + 1,)."""
        with self._opened(path) as opened:
            return opened.starts

    def columns(self, path: str, columns: Sequence[str]) -> pa.Table:
        with self._opened(path, keep=False) as opened:
            table = opened.file.read(columns=list(columns), use_threads=False)
            return self._filled(table, columns)

    def row_group(self, path: str, group: int, columns: Sequence[str]) -> pa.Table:
        with self._opened(path) as opened:
            table = opened.file.read_row_group(group, columns=list(columns), use_threads=False)
            return self._filled(table, columns)

    def rows(self, path: str, rows: NDArray[np.integer], columns: Sequence[str]) -> pa.Table:
        """Chosen rows of one file, in the requested order; only their row groups are read."""
        table, position = self.holding(path, rows, columns)
        if len(position) == 1:
            return table.slice(int(position[0]), 1)
        whole = len(position) == table.num_rows and bool((np.diff(position) == 1).all())
        return table if whole else table.take(arrow_of(position))

    def holding(
        self, path: str, rows: NDArray[np.integer], columns: Sequence[str]
    ) -> tuple[pa.Table, NDArray[np.integer]]:
        """The row groups that hold chosen rows of one file, and the places of the rows in them."""
        with self._opened(path) as opened:
            starts = opened.starts
            group_of_row = np.searchsorted(starts, rows, side="right") - 1
            groups = np.unique(group_of_row)
            table = opened.file.read_row_groups(
                groups.tolist(), columns=list(columns), use_threads=False
            )
        sizes = np.diff(starts)[groups]
        read_starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        position = rows - starts[group_of_row] + read_starts[np.searchsorted(groups, group_of_row)]
        return self._filled(table, columns), position

    def row(self, path: str, row: int, columns: Sequence[str]) -> dict[str, Any]:
        """One row of one file as Python values; a column that the file lacks is missing."""
        with self._opened(path) as opened:
            group = int(opened.starts.searchsorted(row, side="right")) - 1
            table = opened.file.read_row_group(group, columns=list(columns), use_threads=False)
            at = row - int(opened.starts[group])
        return {name: table[name][at].as_py() for name in table.column_names}

    def fetch(self, paths: Iterable[str], is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Copy whole files to this machine, if the location keeps copies, while wanted.

        Files without a copy are read where they are, by ranges.
        """
        copies = self.location.copies
        if copies is None:
            return
        for path in paths:
            with self._named_faults(path):
                opened = partial(self.location.files.open_input_file, path)
                copies.fetch(self._url(path), opened, is_wanted)

    def forget(self, paths: Iterable[str]) -> None:
        """Close files that went out of use, so that a vacuum gives their disk back."""
        with self._lock:
            for path in paths:
                self._idle.pop(path, None)
                self._drop_footer(path)

    def close(self) -> None:
        with self._lock:
            self._idle.clear()

    def _filled(self, table: pa.Table, columns: Sequence[str]) -> pa.Table:
        """The columns in the requested order, if this reader has a schema for missing ones."""
        if not self._schema.names:
            return table
        for name in columns:
            if name not in table.column_names and name in self._schema.names:
                nulls = pa.nulls(table.num_rows, self._schema.field(name).type)
                table = table.append_column(name, nulls)
        return table.select(list(columns))

    @contextmanager
    def _opened(self, path: str, keep: bool = True) -> Iterator[_OpenFile]:
        """A file for this thread alone: Arrow does not promise more."""
        with self._lock:
            opened = self._idle.pop(path, None)
        if opened is None:
            opened = _OpenFile.of(self._open(path))
        with self._named_faults(path):  # a page may be damaged where the footer is not
            yield opened
        with self._lock:
            if keep:
                self._idle[path] = opened
            while len(self._idle) > self._keep_open:
                self._idle.popitem(last=False)

    def _open(self, path: str) -> pq.ParquetFile:
        with self._lock:
            footer = self._footers.get(path)
        with self._named_faults(path):
            source = self._source(path)
            # Many small requests together are for object stores; a disk answers each quickly.
            ahead = not isinstance(source, pa.OSFile)
            file = pq.ParquetFile(
                source, metadata=footer, pre_buffer=ahead, page_checksum_verification=True
            )
        if footer is None:
            with self._lock:
                self._drop_footer(path)
                self._footers[path] = file.metadata
                self._footer_bytes += file.metadata.serialized_size
                while self._footer_bytes > self._most_footer_bytes:
                    self._drop_footer(next(iter(self._footers)))
        return file

    def _source(self, path: str) -> pa.NativeFile:
        if self.location.is_local:
            file = pa.OSFile(self._url(path))
            if not was_intact(path, file, self._url(path)):
                raise _changed(path, self.location)
            return file
        if self.location.copies and (copy := self.location.copies.open(self._url(path))):
            if was_intact(path, copy, f"copy of {self._url(path)}"):
                return copy
            copy.close()
            self.location.copies.remove(self._url(path))
        return self.location.files.open_input_file(path)

    def fault(self, file: DataFile) -> UnreadableFileError | None:
        """The difference of a file, by its bytes and by the log, from what was committed."""
        try:
            with self._named_faults(file.path):
                with self.location.files.open_input_stream(file.path) as content:
                    if not is_intact(file.path, content):
                        raise _changed(file.path, self.location)
                info = self.location.files.get_file_info([file.path])[0]
            file.check(int(self.row_group_starts(file.path)[-1]), info.size)
        except UnreadableFileError as error:
            return error
        return None

    def unreadable(self, paths: Iterable[str]) -> dict[str, UnreadableFileError]:
        """The local files among some that are damaged or gone; each is read once in a process."""
        found = {}
        for path in paths if self.location.is_local else ():
            try:
                with self._named_faults(path):
                    self._source(path).close()
            except UnreadableFileError as error:
                found[path] = error
        return found

    def _url(self, path: str) -> str:
        return f"{self.location.uri}/{path}"

    @contextmanager
    def _named_faults(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise FileGoneError(
                f"cannot read {path} in {self.location.uri}: it is gone. If you asked for an older "
                "version, it was vacuumed: read a newer one, and pin those that you still need",
                path,
            ) from error
        except (OSError, pa.ArrowException) as error:
            message = f"cannot read {path} in {self.location.uri}: {error}"
            if self._is_damaged(path):
                raise DamagedFileError(message, path) from error
            raise StoreError(message) from error

    def _is_damaged(self, path: str) -> bool:
        try:
            with self.location.files.open_input_stream(path) as content:
                return not is_intact(path, content)
        except OSError:
            return False  # the disk or the network fails, and the file may be whole

    def _drop_footer(self, path: str) -> None:
        footer = self._footers.pop(path, None)
        if footer is not None:
            self._footer_bytes -= footer.serialized_size


def _changed(path: str, location: Location) -> DamagedFileError:
    message = (
        f"{path} in {location.uri} is damaged: its bytes are not those that were written; "
        "`parsebank store repair` takes it out"
    )
    return DamagedFileError(message, path)
