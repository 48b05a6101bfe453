"""Places and lengths of the examples of a pinned dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from featurestore.records import key_bytes
from featurestore.tables.encode.columns import list_parts, strings
from featurestore.tables.files import FileReader
from featurestore.tables.index import Keys, keys_of
from featurestore.tables.snapshot import DataFile

_COLUMNS = ("seq", "example_key", "parser", "segment_lengths")


@dataclass(frozen=True)
class RowIndex:
    """The examples of a dataset in sequence order: split, language, ``seq``.

    Attributes:
        paths: The files.
        file, row: File of each example, and its row there. *Shape:* (N,).
        pieces: Stored pieces of each example, over all its segments. *Shape:* (N,), int64.
        part: Partition of each example, as position in ``parts``. *Shape:* (N,).
        parts: Split and language of each partition.
        parser: Parser of each example, as position in ``parsers``. *Shape:* (N,).
        parsers: Fingerprints of the parsers.
        keys: Key of each example. *Shape:* (N, 2).
        repeat: How many times each example stands before, where some are repeated; None where none
            is. *Shape:* (N,).
    """

    paths: tuple[str, ...]
    file: NDArray[np.int32]
    row: NDArray[np.int32]
    pieces: NDArray[np.int64]
    part: NDArray[np.int32]
    parts: tuple[tuple[str, str], ...]
    parser: NDArray[np.int32]
    parsers: tuple[str, ...]
    keys: Keys
    repeat: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.row)

    def select(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> RowIndex:
        """Some of the examples."""
        return RowIndex(
            self.paths,
            self.file[which],
            self.row[which],
            self.pieces[which],
            self.part[which],
            self.parts,
            self.parser[which],
            self.parsers,
            self.keys[which],
            None if self.repeat is None else self.repeat[which],
        )

    @classmethod
    def joined(cls, first: RowIndex, second: RowIndex) -> RowIndex:
        """The examples of one after those of the other; none of them is repeated."""
        parts = tuple(dict.fromkeys((*first.parts, *second.parts)))
        parsers = tuple(dict.fromkeys((*first.parsers, *second.parsers)))
        part = np.array([parts.index(one) for one in second.parts], np.int32)
        parser = np.array([parsers.index(one) for one in second.parsers], np.int32)
        return cls(
            (*first.paths, *second.paths),
            np.concatenate([first.file, second.file + np.int32(len(first.paths))]),
            np.concatenate([first.row, second.row]),
            np.concatenate([first.pieces, second.pieces]),
            np.concatenate([first.part, part[second.part]]),
            parts,
            np.concatenate([first.parser, parser[second.parser]]),
            parsers,
            np.concatenate([first.keys, second.keys]),
        )


def read_row_index(reader: FileReader, files: Sequence[DataFile]) -> RowIndex:
    """Read the index columns of files; every example once, in sequence order.

    An example that racing writers appended twice has one key; the copies are equal, and one stays.
    """
    parts = sorted({file.part for file in files})
    tables = [reader.columns(file.path, _COLUMNS) for file in files]
    rows = pa.concat_tables(tables) if tables else _nothing()
    counts = [table.num_rows for table in tables]
    numbers = [np.arange(count, dtype=np.int32) for count in counts]
    names = np.asarray(strings(rows["parser"]), dtype=object)
    parsers, parser = np.unique(names.astype(str), return_inverse=True)
    # The pieces of a row are the sum of its segment lengths.
    offsets, values = list_parts(rows["segment_lengths"])
    sums = np.concatenate([[0], np.cumsum(values.to_numpy(), dtype=np.int64)])
    index = RowIndex(
        paths=tuple(file.path for file in files),
        file=np.repeat(np.arange(len(files), dtype=np.int32), counts),
        row=np.concatenate([np.empty(0, np.int32), *numbers]),
        pieces=np.diff(sums[offsets]),
        part=np.repeat(np.asarray([parts.index(file.part) for file in files], np.int32), counts),
        parts=tuple(parts),
        parser=parser.astype(np.int32),
        parsers=tuple(parsers.tolist()),
        keys=keys_of(key_bytes(rows["example_key"].to_pylist())),
    )
    return _ordered(index, rows["seq"].to_numpy())


def _ordered(index: RowIndex, seq: NDArray[np.int64]) -> RowIndex:
    """In sequence order, the first of each key only."""
    high, low = index.keys.T
    index = index.select(np.lexsort((low, high, seq, index.part)))
    high, low = index.keys.T
    by_key = np.lexsort((low, high, index.part))
    same = (index.part[by_key], high[by_key], low[by_key])
    repeated = np.logical_and.reduce([column[1:] == column[:-1] for column in same])
    return index.select(np.sort(by_key[np.insert(~repeated, 0, True)[: len(index)]]))


def _nothing() -> pa.Table:
    kinds = {"seq": pa.int64(), "segment_lengths": pa.list_(pa.int32())}
    return pa.schema([(name, kinds.get(name, pa.string())) for name in _COLUMNS]).empty_table()
