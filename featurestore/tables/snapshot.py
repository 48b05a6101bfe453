"""The active files of a table version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable


@dataclass(frozen=True)
class DataFile:
    """One active Parquet file of a table version.

    Attributes:
        path: Path below the table's folder.
        rows: Number of rows.
        size: Bytes.
        partition: Partition columns and their values.
        written: When, in milliseconds since 1970.
    """

    path: str
    rows: int
    size: int
    partition: Mapping[str, str] = field(default_factory=dict)
    written: int = 0


@dataclass(frozen=True)
class Snapshot:
    """The active files of one table version, ordered by path."""

    version: int
    files: tuple[DataFile, ...]


def snapshot_of(handle: DeltaTable) -> Snapshot:
    """The active files behind a handle."""
    actions = pa.table(handle.get_add_actions(flatten=True)).to_pylist()
    files = (_data_file(action) for action in actions)
    return Snapshot(handle.version(), tuple(sorted(files, key=lambda file: file.path)))


def _data_file(action: Mapping[str, Any]) -> DataFile:
    prefix = "partition."
    partition = {
        name.removeprefix(prefix): value
        for name, value in action.items()
        if name.startswith(prefix)
    }
    return DataFile(
        path=action["path"],
        rows=action["num_records"],
        size=action["size_bytes"],
        partition=partition,
        written=action["modification_time"],
    )


def in_partition(files: Sequence[DataFile], partition: Mapping[str, str]) -> list[DataFile]:
    """The files whose partition has all these values."""
    return [
        file
        for file in files
        if all(file.partition.get(name) == value for name, value in partition.items())
    ]
