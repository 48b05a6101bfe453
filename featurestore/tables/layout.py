"""How the tables of a store are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from deltalake import ColumnProperties, WriterProperties

FORMAT_PROPERTY: Final = "parsebank.format"
"""Property of a table: the format whose columns all of its files have; 1 if missing."""

COMPACTION_PROPERTY: Final = "parsebank.compaction"
"""Property of a table: the version from which the last compaction began."""

PAUSE_PROPERTY: Final = "parsebank.pause"
"""Property of a table: name of the change that appends wait for; empty if none."""

_PROPERTIES: Final = {
    # Pinned versions are read back years later: only our vacuum, which knows them, shortens a log.
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.deletedFileRetentionDuration": "interval 36500 days",
}


@dataclass(frozen=True)
class TableLayout:
    """How a table is written.

    Attributes:
        schema: Columns.
        partition_by: Partition columns.
        statistics: Columns whose minimum and maximum go into the log.
        plain: Columns written without a dictionary (blobs and unique keys); no lists.
        hidden: Columns that SQL does not show: what they hold, others hold too.
        nullable: Columns that may be null; tables of earlier releases take null in every column.
        description: What a row is, for people who read the table with other tools.
        comments: What each column holds, likewise.
        format: Format of the store that these columns came with; no older store takes them.
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
    format: int = 1
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
