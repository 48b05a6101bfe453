"""Layout of the tables of a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

_PROPERTIES: Final = {
    # Pinned versions are read back years later: only our vacuum, which knows them, shortens a log.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.deletedFileRetentionDuration": "interval 36500 days",
}


@dataclass(frozen=True)
class TableLayout:
    """Layout of a table.

    Attributes:
        statistics: Columns whose minimum and maximum go into the log.
        plain: Columns written without a dictionary (blobs and unique keys); no lists.
        hidden: Columns that SQL does not show: what they hold, others hold too.
        description: Content of a row, for people who read the table with other tools.
        comments: Content of each column, likewise.
        properties: Further table properties, such as ``parsebank.dataset``.
    """

    schema: pa.Schema
    partition_by: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    nullable: tuple[str, ...] = ()
    description: str = ""
    comments: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    def described_schema(self) -> pa.Schema:
        """The columns as the table is created: with comments, and not null where they never are."""
        return pa.schema(
            column.with_nullable(column.name in self.nullable).with_metadata(
                {"comment": self.comments[column.name]} if column.name in self.comments else None
            )
            for column in self.schema
        )

    def table_properties(self) -> dict[str, str]:
        columns = ",".join(self.statistics or (self.schema.names[0],))
        return {**_PROPERTIES, "delta.dataSkippingStatsColumns": columns, **self.properties}

    @cached_property
    def stored_schema(self) -> pa.Schema:
        """The columns of a data file: those of partitions are in its path and in the log."""
        return pa.schema(column for column in self.schema if column.name not in self.partition_by)

    def parquet_options(self) -> dict[str, Any]:
        """Options of a Parquet writer: zstd level 1, no dictionary where it only costs time.

        No reader uses the bounds of lists and blobs, a third of the footer in small row groups.
        """
        leaves = [leaf for column in self.stored_schema for leaf in _leaves(column, column.name)]
        flat = [name for name in self.stored_schema.names if name in leaves]
        return {
            "compression": "zstd",
            "compression_level": 1,
            "use_dictionary": [name for name in leaves if name not in self.plain],
            "write_statistics": [name for name in flat if name not in self.plain],
            "write_page_checksum": True,
        }


def _leaves(column: pa.Field, path: str) -> list[str]:
    if pa.types.is_list(column.type):
        return _leaves(column.type.value_field, f"{path}.list.element")
    if pa.types.is_struct(column.type):
        return [leaf for one in column.type for leaf in _leaves(one, f"{path}.{one.name}")]
    return [path]
