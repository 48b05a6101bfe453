"""The active files of a table version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from featurestore.tables.files import DamagedFileError
from featurestore.tables.location import Location

if TYPE_CHECKING:
    import pyarrow.dataset as pa_dataset


@dataclass(frozen=True)
class DataFile:
    """One active Parquet file of a table version.

    Attributes:
        path: Path below the table's folder.
        size: Bytes.
        written: Time in milliseconds since 1970.
    """

    path: str
    rows: int
    size: int
    partition: Mapping[str, str] = field(default_factory=dict)
    written: int = 0

    @property
    def part(self) -> tuple[str, str]:
        """Split and language of the rows, in a dataset's table."""
        return self.partition["split"], self.partition["lang"]

    def check(self, rows: int, size: int) -> None:
        """Refuse a file whose rows, bytes or partition the log does not confirm."""
        folders = self.path.split("/")[:-1]
        named = {name: unquote(value) for name, _, value in (x.partition("=") for x in folders)}
        found = (rows, size, named)
        if found != (self.rows, self.size, dict(self.partition)):
            said = f"{self.rows} rows, {self.size} bytes, partition {dict(self.partition)}"
            message = (
                f"{self.path} has {rows} rows, {size} bytes, partition {named}; the log says {said}"
            )
            raise DamagedFileError(message, self.path)


@dataclass(frozen=True)
class Snapshot:
    """The active files of one table version, ordered by path."""

    version: int
    files: tuple[DataFile, ...]


def snapshot_of(handle: DeltaTable) -> Snapshot:
    return Snapshot(handle.version(), files_of(handle))


def files_of(handle: DeltaTable) -> tuple[DataFile, ...]:
    """The active files behind a handle, ordered by path."""
    prefix = "partition."
    # `pa.table` would import pandas, where that is installed, to see if it is a data frame.
    actions = pa.RecordBatchReader.from_stream(handle.get_add_actions(flatten=True))
    files = [
        DataFile(
            path=unquote(action["path"]),
            rows=action["num_records"],
            size=action["size_bytes"],
            partition={
                name.removeprefix(prefix): value
                for name, value in action.items()
                if name.startswith(prefix)
            },
            written=action["modification_time"],
        )
        for action in actions.read_all().to_pylist()
    ]
    return tuple(sorted(files, key=lambda file: file.path))


def in_partition(files: Sequence[DataFile], partition: Mapping[str, str]) -> list[DataFile]:
    return [
        file
        for file in files
        if all(file.partition.get(name) == value for name, value in partition.items())
    ]


def changed_files(location: Location, files: Iterable[DataFile]) -> list[str]:
    """Paths of local files that have another size than was committed, or are gone.

    Files of an object store are not looked at: that takes a request for each.
    """
    if not location.is_local:
        return []
    sizes = {file.path: file.size for file in files}
    found = location.files.get_file_info(list(sizes))
    return [path for info, path in zip(found, sizes, strict=True) if info.size != sizes[path]]


def arrow_dataset(
    location: Location, files: Sequence[DataFile], schema: pa.Schema
) -> pa_dataset.Dataset:
    """Files as an Arrow dataset; a column that a file lacks is null, pages are compared with CRCs.

    Not `DeltaTable.to_pyarrow_dataset`: that takes bounds that were not written for null, so that a
    filter on such a column finds nothing. Partition columns have the type string.
    """
    import pyarrow.dataset as pa_dataset  # imports pandas, where that is installed

    checked = pa_dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
    names = sorted({name for file in files for name in file.partition})
    parts = pa.schema([(name, pa.string()) for name in names])
    return pa_dataset.dataset(
        [file.path for file in files],
        schema=schema,
        format=pa_dataset.ParquetFileFormat(default_fragment_scan_options=checked),
        filesystem=location.files,
        partitioning=pa_dataset.partitioning(parts, flavor="hive") if names else None,
    )
