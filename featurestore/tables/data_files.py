"""Data files of a table: Parquet, named by the SHA-256 of their bytes.

The log lists the names, and so says what the bytes must be, and no reader of Delta is disturbed.
Pages have a CRC-32 too, which tells what of a damaged file is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from featurestore.tables.layout import TableLayout
from featurestore.tables.location import Location

_NAME: Final = re.compile(r"(?:.*/)?[0-9a-f]{8}-([0-9a-f]{32})\.parquet")
"""Eight random digits, since rows that are written twice are two files, and half of the hash."""

_CHUNK: Final = 8 << 20

_INTACT: Final[dict[str, tuple[int, int, int]]] = {}
"""Local files that were intact, with inode, size and time of change as they were then."""


def is_intact(path: str, content: pa.NativeFile) -> bool:
    """``True`` if a file, from its position to its end, has the bytes that its name says."""
    named = _NAME.fullmatch(path)
    digest = hashlib.sha256()
    while chunk := content.read(_CHUNK):
        digest.update(chunk)
    return named is not None and digest.hexdigest().startswith(named[1])


def was_intact(path: str, file: pa.OSFile, key: str) -> bool:
    """As `is_intact`, of a local file; read once in a process, unless the file changes."""
    found = os.fstat(file.fileno())
    state = (found.st_ino, found.st_size, found.st_mtime_ns)
    if _INTACT.get(key) == state:
        return True
    if not is_intact(path, file):
        return False
    file.seek(0)
    _INTACT[key] = state
    return True


def write_files(
    location: Location,
    layout: TableLayout,
    partition: Mapping[str, str],
    rows: Iterable[pa.Table],
    row_group: int,
    file_bytes: int | None = None,
) -> list[AddAction]:
    """Write rows of one partition to new files; without ``file_bytes``, there is one at most."""
    added, draft = [], None
    for group in _groups(rows, layout.stored_schema, row_group):
        draft = draft or _Draft(layout)
        draft.write(group)
        if file_bytes is not None and draft.size >= file_bytes:
            added.append(draft.finish(location, partition))
            draft = None
    if draft is not None:
        added.append(draft.finish(location, partition))
    return added


def partitions_of(
    rows: pa.Table, columns: Iterable[str]
) -> Iterator[tuple[dict[str, str], pa.Table]]:
    names = list(columns)
    if not names:
        if rows.num_rows:
            yield {}, rows
        return
    for values in rows.select(names).group_by(names).aggregate([]).to_pylist():
        wanted = pa.array([True] * rows.num_rows)
        for name, value in values.items():
            wanted = pc.and_(wanted, pc.equal(rows[name], value))
        yield values, rows.filter(wanted)


class _Draft:
    """A file in memory: of at most about `compaction.FILE_BYTES`, or as large as one commit."""

    def __init__(self, layout: TableLayout) -> None:
        self._layout = layout
        self._content = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(
            self._content, layout.stored_schema, **layout.parquet_options()
        )
        self._rows = 0
        self._bounds: dict[str, tuple[Any, Any]] = {}

    @property
    def size(self) -> int:
        size: int = self._content.tell()
        return size

    def write(self, group: pa.Table) -> None:
        self._writer.write_table(group, row_group_size=group.num_rows)
        self._rows += group.num_rows
        for name in self._layout.statistics:
            found = pc.min_max(group[name]).as_py()
            bounds = [*self._bounds.get(name, ()), found["min"], found["max"]]
            there = [value for value in bounds if value is not None]
            self._bounds[name] = (min(there, default=None), max(there, default=None))

    def finish(self, location: Location, partition: Mapping[str, str]) -> AddAction:
        self._writer.close()
        content = self._content.getvalue()
        name = f"{uuid4().hex[:8]}-{hashlib.sha256(content).hexdigest()[:32]}.parquet"
        folders = (f"{column}={quote(value, safe='')}" for column, value in partition.items())
        path = "/".join((*folders, name))
        location.write(path, content.to_pybytes())
        statistics = {
            "numRecords": self._rows,
            "minValues": {name: least for name, (least, _) in self._bounds.items()},
            "maxValues": {name: most for name, (_, most) in self._bounds.items()},
        }
        now = int(time.time() * 1000)
        return AddAction(path, content.size, dict(partition), now, True, json.dumps(statistics))


def _groups(rows: Iterable[pa.Table], schema: pa.Schema, size: int) -> Iterator[pa.Table]:
    held, count = [], 0
    for table in rows:
        held.append(table.select(schema.names).cast(schema))
        count += table.num_rows
        if count < size:
            continue
        joined = pa.concat_tables(held)
        whole = count - count % size
        for start in range(0, whole, size):
            yield joined.slice(start, size).combine_chunks()
        held, count = [joined.slice(whole)], count - whole
    if count:
        yield pa.concat_tables(held).combine_chunks()
