"""Rows of a table's data files, of damaged ones and of those that no entry mentions too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from featurestore.tables.delta import Table
from featurestore.tables.files import FileReader, UnreadableFileError
from featurestore.tables.snapshot import DataFile

_KEYS: Final = {"parses": "key", "fingerprints": None, "drops": None, "pins": None}
"""Column by which rows are looked up; any other table has ``example_key``. Without one, whole rows
are compared."""

Identity = tuple[object, ...]
"""What tells a row from the others of its table."""


class TableRows:
    """Rows of a table's files.

    Args:
        name: Path of the table below the store.
        table: The table.

    Attributes:
        key: Column of keys, 32 hexadecimal digits; None if rows are not looked up by one.
        identity: Columns that tell rows apart.
    """

    def __init__(self, name: str, table: Table) -> None:
        self.key = _KEYS.get(name, "example_key")
        self._schema = table.layout.schema
        own = self._schema.names if self.key is None else [self.key, *table.layout.partition_by]
        self.identity: Sequence[str] = own
        self._reader = FileReader(table.location, schema=self._schema)

    def fault(self, file: DataFile) -> str | None:
        """What is wrong with a file."""
        try:
            starts = self._reader.row_group_starts(file.path)
            for group in range(len(starts) - 1):
                rows = self._group(file.path, group)
                if len(self._with_keys(rows)) < len(rows):
                    return f"{file.path} has rows without a key"
            file.check_rows(int(starts[-1]))
        except UnreadableFileError as error:
            return str(error)
        return None

    def readable(self, path: str) -> pa.Table:
        """The rows with a key of the row groups that can be read."""
        found = [self._schema.empty_table()]
        with suppress(UnreadableFileError):
            for group in range(len(self._reader.row_group_starts(path)) - 1):
                with suppress(UnreadableFileError):
                    found.append(self._with_keys(self._group(path, group)))
        return pa.concat_tables(found)

    def identities(self, path: str) -> list[Identity]:
        """What tells the rows of a file apart, in their order.

        Raises:
            UnreadableFileError: The file is damaged or gone.
        """
        parts = _parts(path)
        stored = [name for name in self.identity if name not in parts]
        return self.identities_of(_with_parts(self._reader.columns(path, stored), parts))

    def identities_of(self, rows: pa.Table) -> list[Identity]:
        """The same of rows."""
        columns = (rows[name].to_pylist() for name in self.identity)
        return list(zip(*columns, strict=True))

    def _with_keys(self, rows: pa.Table) -> pa.Table:
        """The rows whose key is one; null is none."""
        if self.key is None:
            return rows
        return rows.filter(pc.match_substring_regex(rows[self.key], "^[0-9a-f]{32}$"))

    def _group(self, path: str, group: int) -> pa.Table:
        parts = _parts(path)
        names = [name for name in self._schema.names if name not in parts]
        rows = _with_parts(self._reader.row_group(path, group, names), parts)
        return rows.select(self._schema.names).cast(self._schema)


def _parts(path: str) -> dict[str, str]:
    """The partition of a file. Of one that no entry mentions, only the path says it."""
    folders = (part.partition("=") for part in path.split("/")[:-1])
    return {name: unquote(value) for name, _, value in folders}


def _with_parts(rows: pa.Table, parts: Mapping[str, str]) -> pa.Table:
    """With the columns of the partition, which files do not have."""
    for name, value in parts.items():
        rows = rows.append_column(name, pa.array([value] * rows.num_rows, pa.string()))
    return rows
