"""Remote files for DuckDB, through Arrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.dataset as pa_dataset


class RemoteFiles(pa_dataset.FileSystemDataset):  # type: ignore[misc]  # pyarrow has no types
    """A dataset of files that DuckDB can scan though their file system is written in Python.

    DuckDB asks a scanner for its reader. Arrow's reader holds Python's lock while it starts: a file
    that is being opened waits for that lock and holds one of the scan, which waits for it, for
    ever. Batches are waited for without Python's lock.
    """

    @classmethod
    def of(cls, dataset: pa_dataset.FileSystemDataset) -> RemoteFiles:
        fragments = list(dataset.get_fragments())
        return cls(fragments, dataset.schema, dataset.format, dataset.filesystem)

    def scanner(self, **options: Any) -> _BatchScanner:
        return _BatchScanner(super().scanner(**options))


class _BatchScanner:
    def __init__(self, scanner: pa_dataset.Scanner) -> None:
        self._scanner = scanner

    def to_reader(self) -> pa.RecordBatchReader:
        scanner = self._scanner
        return pa.RecordBatchReader.from_batches(scanner.projected_schema, scanner.to_batches())
