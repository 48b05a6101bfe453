"""Reading chosen rows of Parquet files by row group."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from featurestore.location import Location
from syntax.errors import StoreError

_FOOTER_BYTES: Final = 64 << 20
"""Bytes of footers, as they lie in the files, kept in memory; there they take about six times."""


@dataclass(frozen=True)
class _OpenFile:
    """A file that is open, and the first row of each of its row groups with the end."""

    file: pq.ParquetFile
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, file: pq.ParquetFile) -> _OpenFile:
        footer = file.metadata
        sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        return cls(file, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


class FileGoneError(StoreError):
    """A file was vacuumed: a newer version of its table has its rows elsewhere, if at all."""


class FileReader:
    """Reads the Parquet files below a location and remembers their footers.

    Files never change once written, so a footer stays true. Safe for threads.

    Args:
        location: The folder.
        keep_open: Files that stay open for the next read; opening one costs more than a row.
    """

    def __init__(self, location: Location, keep_open: int = 0) -> None:
        self.location = location
        self._keep_open = keep_open
        self._idle: OrderedDict[str, _OpenFile] = OrderedDict()
        self._footers: OrderedDict[str, pq.FileMetaData] = OrderedDict()
        self._footer_bytes = 0
        self._lock = threading.Lock()

    def row_group_starts(self, path: str) -> NDArray[np.int64]:
        """First row of each row group, and the number of rows. *Shape:* (G + 1,)."""
        with self._opened(path) as opened:
            return opened.starts

    def columns(self, path: str, columns: Sequence[str]) -> pa.Table:
        """Whole columns of one file."""
        with self._opened(path, keep=False) as opened:
            return _plain(opened.file.read(columns=list(columns), use_threads=False))

    def row_group(self, path: str, group: int, columns: Sequence[str]) -> pa.Table:
        """Columns of one row group."""
        with self._opened(path) as opened:
            file = opened.file
            return _plain(file.read_row_group(group, columns=list(columns), use_threads=False))

    def rows(self, path: str, rows: NDArray[np.integer], columns: Sequence[str]) -> pa.Table:
        """Chosen rows of one file, in the order asked, reading only their row groups."""
        with self._opened(path) as opened:
            starts = opened.starts
            group_of_row = np.searchsorted(starts, rows, side="right") - 1
            groups = np.unique(group_of_row)
            table = _plain(
                opened.file.read_row_groups(
                    groups.tolist(), columns=list(columns), use_threads=False
                )
            )
        sizes = np.diff(starts)[groups]
        read_starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        position = rows - starts[group_of_row] + read_starts[np.searchsorted(groups, group_of_row)]
        return _at(table, position)

    def forget(self, paths: Iterable[str]) -> None:
        """Close files that went out of use, so that a vacuum gives their disk back."""
        with self._lock:
            for path in paths:
                self._idle.pop(path, None)
                self._drop_footer(path)

    def close(self) -> None:
        """Close the files; the next read opens them again."""
        with self._lock:
            self._idle.clear()

    @contextmanager
    def _opened(self, path: str, keep: bool = True) -> Iterator[_OpenFile]:
        """A file for this thread alone: Arrow does not promise more."""
        with self._lock:
            opened = self._idle.pop(path, None)
        if opened is None:
            opened = _OpenFile.of(self._open(path))
        yield opened
        with self._lock:
            if keep:
                self._idle[path] = opened
            while len(self._idle) > self._keep_open:
                self._idle.popitem(last=False)

    def _open(self, path: str) -> pq.ParquetFile:
        with self._lock:
            footer = self._footers.get(path)
        try:
            source = self.location.files.open_input_file(path)
            # Many small requests at once are for object stores; a disk answers the next one.
            ahead = not self.location.is_local
            file = pq.ParquetFile(source, metadata=footer, pre_buffer=ahead)
        except FileNotFoundError as error:
            raise FileGoneError(
                f"cannot read {path} in {self.location.uri}: it is gone. If you asked for an older "
                "version, it was vacuumed: read a newer one, and pin those that you still need"
            ) from error
        except (OSError, pa.ArrowInvalid) as error:
            raise StoreError(f"cannot read {path} in {self.location.uri}: {error}") from error
        if footer is None:
            self._remember(path, file.metadata)
        return file

    def _remember(self, path: str, footer: pq.FileMetaData) -> None:
        with self._lock:
            self._drop_footer(path)
            self._footers[path] = footer
            self._footer_bytes += footer.serialized_size
            while self._footer_bytes > _FOOTER_BYTES:
                self._drop_footer(next(iter(self._footers)))

    def _drop_footer(self, path: str) -> None:
        footer = self._footers.pop(path, None)
        if footer is not None:
            self._footer_bytes -= footer.serialized_size


def _at(table: pa.Table, position: NDArray[np.integer]) -> pa.Table:
    """The rows at these positions."""
    if len(position) == 1:
        return table.slice(int(position[0]), 1)
    whole = len(position) == table.num_rows and bool((np.diff(position) == 1).all())
    return table if whole else table.take(pa.array(position))


def _plain(table: pa.Table) -> pa.Table:
    """The same with strings for string views, which deletions leave and few kernels know."""
    fields = [column.with_type(_plain_type(column.type)) for column in table.schema]
    schema = pa.schema(fields)
    return table if schema.equals(table.schema) else table.cast(schema)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    return pa.list_(_plain_type(kind.value_type)) if pa.types.is_list(kind) else kind
