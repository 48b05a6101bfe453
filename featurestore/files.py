"""Reading chosen rows of Parquet files by row group."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from featurestore.location import Location
from syntax.errors import StoreError

_FOOTERS: Final = 4096
"""Footers kept in memory; one is a few kilobytes."""


class FileReader:
    """Reads the Parquet files below a location and remembers their footers.

    Files never change once written, so a footer stays true. Safe for threads.
    """

    def __init__(self, location: Location) -> None:
        self.location = location
        self._footers: OrderedDict[str, pq.FileMetaData] = OrderedDict()
        self._lock = threading.Lock()

    def row_group_starts(self, path: str) -> NDArray[np.int64]:
        """First row of each row group, and the number of rows. *Shape:* (G + 1,)."""
        footer = self._open(path).metadata
        sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def columns(self, path: str, columns: Sequence[str]) -> pa.Table:
        """Whole columns of one file."""
        return self._open(path).read(columns=list(columns), use_threads=False)

    def row_group(self, path: str, group: int, columns: Sequence[str]) -> pa.Table:
        """Columns of one row group."""
        return self._open(path).read_row_group(group, columns=list(columns), use_threads=False)

    def rows(self, path: str, rows: NDArray[np.integer], columns: Sequence[str]) -> pa.Table:
        """Chosen rows of one file, in the order asked, reading only their row groups."""
        starts = self.row_group_starts(path)
        group_of_row = np.searchsorted(starts, rows, side="right") - 1
        groups = np.unique(group_of_row)
        sizes = np.diff(starts)[groups]
        read_starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        position = rows - starts[group_of_row] + read_starts[np.searchsorted(groups, group_of_row)]
        table = self._open(path).read_row_groups(
            groups.tolist(), columns=list(columns), use_threads=False
        )
        whole = len(position) == table.num_rows and bool((np.diff(position) == 1).all())
        return table if whole else table.take(pa.array(position))

    def _open(self, path: str) -> pq.ParquetFile:
        with self._lock:
            footer = self._footers.get(path)
        try:
            source = self.location.files.open_input_file(path)
            file = pq.ParquetFile(source, metadata=footer)
        except FileNotFoundError as error:
            raise StoreError(
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
            self._footers[path] = footer
            while len(self._footers) > _FOOTERS:
                self._footers.popitem(last=False)
