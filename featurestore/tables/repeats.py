"""Rows that racing writers appended twice: one of each stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from featurestore.records import key_bytes
from featurestore.tables.delta import Table
from featurestore.tables.files import FileReader
from featurestore.tables.index import KeyIndex, keys_of
from featurestore.tables.rows import read_row_index
from featurestore.tables.snapshot import in_partition

_AT_ONCE: Final = 500


def remove_repeats(table: Table, partition: Mapping[str, str], keys: Sequence[str]) -> None:
    """Keep one row of each of these examples: the one that readers of the dataset see."""
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        table.replace(partial(_seen_rows, table, partition, some), "example_key", partition)


def _seen_rows(table: Table, partition: Mapping[str, str], keys: Sequence[str]) -> pa.Table:
    reader = FileReader(table.location, schema=table.layout.schema)
    index = read_row_index(reader, in_partition(table.snapshot().files, partition))
    wanted = KeyIndex()
    wanted.add(keys_of(key_bytes(list(keys))), 0)
    chosen = index.select(wanted.find(index.keys).found)
    columns = [name for name in table.layout.schema.names if name not in partition]
    if not len(chosen):  # all deleted
        return table.layout.schema.empty_table()
    rows = pa.concat_tables(
        reader.rows(chosen.paths[file], chosen.row[chosen.file == file], columns)
        for file in np.unique(chosen.file)
    )
    for name, value in partition.items():
        rows = rows.append_column(name, pa.array([value] * rows.num_rows, pa.string()))
    return rows.select(table.layout.schema.names)
