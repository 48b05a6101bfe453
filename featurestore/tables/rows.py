"""Places and lengths of the examples of a pinned dataset."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from featurestore.records import key_bytes
from featurestore.tables.delta import Table
from featurestore.tables.encode.columns import distinct, list_parts, numpy_of, one_array
from featurestore.tables.file_cache import FileCache, KeptArrays
from featurestore.tables.files import FileReader
from featurestore.tables.index import Keys, keys_of
from featurestore.tables.snapshot import DataFile, changed_files
from syntax.fingerprint import fingerprint

CHUNK_PIECES: Final = 262_144

KEPT_ROWS: Final = 16_384
"""Examples from which on an index is kept: reading fewer takes a fraction of a second."""

_COLUMNS: Final = ("seq", "example_key", "parser", "segment_lengths")
_ARRAYS: Final = ("file", "row", "pieces", "part", "parser", "keys")
_FORMAT: Final = 2
_AT_ONCE: Final = 1 << 20
"""Examples of which something is computed together, so that a large dataset takes no memory."""


@dataclass(frozen=True)
class KeptRows:
    """Summary of all examples of an index that lies in a file.

    Attributes:
        counts, chunk_starts, content: As `RowIndex` has them.
        source: The open file, which stays on the disk for as long; ``None`` in another process.
    """

    counts: NDArray[np.int64]
    chunk_starts: NDArray[np.int64]
    content: str
    source: pa.NativeFile | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[type[KeptRows], tuple[Any, ...]]:
        return KeptRows, (self.counts, self.chunk_starts, self.content)


@dataclass(frozen=True)
class RowIndex:
    """The examples of a dataset in sequence order: split, language, ``seq``.

    Attributes:
        file, row: File of each example, and its row there. *Shape:* (N,).
        pieces: Stored pieces of each example, over all its segments. *Shape:* (N,), int64.
        part: Partition of each example, as position in ``parts``. *Shape:* (N,).
        parts: Split and language of each partition.
        parser: Parser of each example, as position in ``parsers``. *Shape:* (N,).
        parsers: Fingerprints of the parsers.
        keys: Key of each example. *Shape:* (N, 2).
        repeat: Earlier occurrences of each example, where some are repeated; None where none
            is. *Shape:* (N,).
        kept: For an index that lies in a file, whose arrays take no memory of their own.
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
    kept: KeptRows | None = None

    def __len__(self) -> int:
        return len(self.row)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Examples of each partition and parser. *Shape:* (parts, parsers)."""
        if self.kept is not None:
            return self.kept.counts
        shape = (len(self.parts), len(self.parsers))
        pairs = self.part.astype(np.int64) * shape[1] + self.parser
        return np.bincount(pairs, minlength=shape[0] * shape[1]).reshape(shape)

    @cached_property
    def chunk_starts(self) -> NDArray[np.int64]:
        return chunk_starts(self.pieces) if self.kept is None else self.kept.chunk_starts

    @cached_property
    def content(self) -> str:
        """Fingerprint of the keys in their order."""
        if self.kept is not None:
            return self.kept.content
        content = hashlib.blake2b(digest_size=16)
        for start in range(0, len(self), _AT_ONCE):
            content.update(self.keys[start : start + _AT_ONCE].astype(">u8").tobytes())
        return content.hexdigest()

    def select(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> RowIndex:
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


def chunk_starts(pieces: NDArray[np.integer]) -> NDArray[np.int64]:
    """First examples of the chunks, cut wherever another `CHUNK_PIECES` have been passed.

    Without an example there is one chunk. *Shape:* (N,) to (C,).
    """
    starts, done, last = [np.zeros(1, np.int64)], 0, 0
    for first in range(0, len(pieces), _AT_ONCE):
        ends = done + np.cumsum(pieces[first : first + _AT_ONCE], dtype=np.int64)
        numbers = np.append(done, ends[:-1]) // CHUNK_PIECES
        starts.append(first + np.flatnonzero(np.diff(numbers, prepend=last)))
        done, last = int(ends[-1]), int(numbers[-1])
    return np.concatenate(starts)


def open_row_index(table: Table, reader: FileReader, files: Sequence[DataFile]) -> RowIndex:
    """The index of files of a table; of many examples, it is kept on this machine."""
    made = table.made
    if made is None or sum(file.rows for file in files) < KEPT_ROWS:
        return read_row_index(reader, files)
    url = f"rows:{table.location.uri}"
    # A file that is damaged now is found when it is read.
    is_kept = not changed_files(table.location, files)
    if is_kept and (found := _index_of(made.read(url, _word(files)), files)):
        return found
    with made.making(url):
        if is_kept and (found := _index_of(made.read(url, _word(files)), files)):
            return found
        index = read_row_index(reader, files)
        return _keep(made, url, index, files) or index


def _word(files: Sequence[DataFile]) -> str:
    return fingerprint([_FORMAT, *(file.path for file in files)])


def _index_of(kept: KeptArrays | None, files: Sequence[DataFile]) -> RowIndex | None:
    if kept is None:
        return None
    return RowIndex(
        paths=tuple(file.path for file in files),
        parts=tuple(map(tuple, kept.about["parts"])),
        parsers=tuple(kept.about["parsers"]),
        kept=KeptRows(
            counts=np.array(kept.about["counts"], np.int64),
            chunk_starts=np.array(kept.about["chunk_starts"], np.int64),
            content=kept.about["content"],
            source=kept.source,
        ),
        **kept.arrays,
    )


def _keep(made: FileCache, url: str, index: RowIndex, files: Sequence[DataFile]) -> RowIndex | None:
    arrays = {name: getattr(index, name) for name in _ARRAYS}
    about = {
        "parts": index.parts,
        "parsers": index.parsers,
        "counts": index.counts.tolist(),
        "chunk_starts": index.chunk_starts.tolist(),
        "content": index.content,
    }
    return _index_of(made.keep(url, _word(files), arrays, about), files)


def read_row_index(reader: FileReader, files: Sequence[DataFile]) -> RowIndex:
    """Read the index columns of files; every example once, in sequence order.

    Of an example that racing writers appended twice, one copy stays; they are equal.
    """
    parts = sorted({file.part for file in files})
    indexes = [_nothing(parts), *(_of_file(reader, file, parts) for file in files)]
    parsers = sorted({parser for index, _ in indexes for parser in index.parsers})
    numbers = [
        np.array([parsers.index(parser) for parser in index.parsers], np.int32)[index.parser]
        for index, _ in indexes
    ]
    counts = [len(index) for index, _ in indexes[1:]]
    index = RowIndex(
        paths=tuple(file.path for file in files),
        file=np.repeat(np.arange(len(files), dtype=np.int32), counts),
        row=np.concatenate([index.row for index, _ in indexes]),
        pieces=np.concatenate([index.pieces for index, _ in indexes]),
        part=np.concatenate([index.part for index, _ in indexes]),
        parts=tuple(parts),
        parser=np.concatenate(numbers),
        parsers=tuple(parsers),
        keys=np.concatenate([index.keys for index, _ in indexes]),
    )
    return _ordered(index, np.concatenate([seq for _, seq in indexes]))


def _of_file(
    reader: FileReader, file: DataFile, parts: Sequence[tuple[str, str]]
) -> tuple[RowIndex, NDArray[np.int64]]:
    rows = reader.columns(file.path, _COLUMNS)
    parsers, parser = distinct(one_array(rows["parser"]))
    # The pieces of a row are the sum of its segment lengths.
    offsets, values = list_parts(rows["segment_lengths"])
    sums = np.concatenate([[0], np.cumsum(numpy_of(values), dtype=np.int64)])
    index = RowIndex(
        paths=(file.path,),
        file=np.zeros(rows.num_rows, np.int32),
        row=np.arange(rows.num_rows, dtype=np.int32),
        pieces=np.diff(sums[offsets]),
        part=np.full(rows.num_rows, parts.index(file.part), np.int32),
        parts=tuple(parts),
        parser=parser,
        parsers=tuple(parsers),
        keys=keys_of(key_bytes(rows["example_key"].to_pylist())),
    )
    return index, numpy_of(one_array(rows["seq"]))


def _ordered(index: RowIndex, seq: NDArray[np.int64]) -> RowIndex:
    order = np.lexsort((seq, index.part))
    # Examples of several parsers share a ``seq``, and so do copies of racing writers.
    if _equal_previous(seq[order], index.part[order]).any():
        high, low = index.keys.T
        order = np.lexsort((low, high, seq, index.part))
    index = index.select(order)
    high, low = index.keys.T
    # Keys are random: where no first half is there twice, no key is.
    if not _equal_previous(np.sort(high)).any():
        return index
    by_key = np.lexsort((low, high, index.part))
    repeated = _equal_previous(index.part[by_key], high[by_key], low[by_key])
    if not repeated.any():
        return index
    return index.select(np.sort(by_key[np.insert(~repeated, 0, True)]))


def _equal_previous(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of rows that equal the one before, without the first row. *Shape:* (N - 1,)."""
    same: NDArray[np.bool_] = np.logical_and.reduce([x[1:] == x[:-1] for x in columns])
    return same


def _nothing(parts: Sequence[tuple[str, str]]) -> tuple[RowIndex, NDArray[np.int64]]:
    none, seq = np.empty(0, np.int32), np.empty(0, np.int64)
    keys = np.empty((0, 2), np.uint64)
    return RowIndex((), none, none, seq, none, tuple(parts), none, (), keys), seq
