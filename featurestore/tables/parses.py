"""The parse cache: one row per parse key, found through a key index."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from featurestore.records import ParseRecord, Transaction
from featurestore.tables.buffer import WriteBuffer
from featurestore.tables.encode.columns import list_parts
from featurestore.tables.encode.packed import pack_record, unpack_record
from featurestore.tables.encode.parses import (
    check_record,
    encode_parses,
    unpack_parses,
)
from featurestore.tables.files import FileGoneError, FileReader, UnreadableFileError
from featurestore.tables.lookup import KeyLookup, group_by_file
from featurestore.tables.root import StoreRoot
from featurestore.tables.schema import PARSES
from featurestore.tables.snapshot import arrow_dataset
from syntax.errors import StoreError

T = TypeVar("T")

ROW_GROUP = 128
"""Rows in a row group: fetching one key decodes one group of its file."""

OPEN_FILES: Final = 32

BULK_FOOTERS: Final = 2 << 20
"""Bytes of footers that are remembered where many parses are read together, file by file: reading
one again costs a few milliseconds, and what 30 files of 100,000 parses have takes 450 MB."""

_PACKED: Final = ("record",)

REPLACED: Final = 1_000


class ParseTable:
    """Parses by key. Safe for threads; processes share the location."""

    def __init__(
        self,
        root: StoreRoot,
        *,
        cache_items: int = 10_000,
        buffer_rows: int = 256,
        buffer_seconds: float = 0.2,
        refresh_seconds: float = 0.0,
    ) -> None:
        self.table = root.table(PARSES, "parses")
        self._reader = FileReader(self.table.location, keep_open=OPEN_FILES)
        self._bulk = FileReader(self.table.location, footer_bytes=BULK_FOOTERS)
        self._lookup = KeyLookup(
            self.table,
            self._reader,
            "key",
            refresh_seconds=refresh_seconds,
            on_removal=self._forget_removed,
        )
        self._cache = RecordCache(cache_items)
        self._buffer = WriteBuffer(self._commit, buffer_rows, buffer_seconds)

    def get_many(self, keys: Sequence[str]) -> dict[str, ParseRecord]:
        """The stored records among ``keys``, in the order of ``keys``."""
        generation = self._cache.generation
        found = self._buffer.get_many(keys)
        found.update(self._cache.get_many([key for key in keys if key not in found]))
        read = self._read([key for key in dict.fromkeys(keys) if key not in found])
        self._cache.put_many(read.values(), generation)
        found.update(read)
        return {key: found[key] for key in keys if key in found}

    def get_packed(self, keys: Sequence[str]) -> dict[str, bytes]:
        """As `get_many`, but packed, a tenth of the size; nothing is kept in memory."""
        found = {key: pack_record(record) for key, record in self._buffer.get_many(keys).items()}
        others = [key for key in dict.fromkeys(keys) if key not in found]
        found.update(self._present(lambda: self._read_many(others, self._packed_rows)))
        return {key: found[key] for key in keys if key in found}

    def word_counts(self, keys: Sequence[str]) -> dict[str, int]:
        """Number of words of the stored parses among ``keys``, of all their sentences."""
        found = {
            key: record.parse.word_count for key, record in self._buffer.get_many(keys).items()
        }
        others = [key for key in dict.fromkeys(keys) if key not in found]
        found.update(self._present(lambda: self._read_many(others, self._word_counts)))
        return found

    def get_many_cached(self, keys: Sequence[str]) -> dict[str, ParseRecord] | None:
        """As `get_many`, but ``None`` if it needs the disk. Never waits: an event loop may ask."""
        found = self._buffer.get_many(keys)
        found.update(self._cache.get_many([key for key in keys if key not in found]))
        others = [key for key in keys if key not in found]
        return found if not others or self._lookup.is_absent(others) else None

    def contains(self, keys: Sequence[str]) -> NDArray[np.bool_]:
        """Mask of the keys that are stored or buffered. *Shape:* (N,)."""
        buffered = self._buffer.get_many(keys)
        stored = self._lookup.find(keys).found
        return np.logical_or(stored, [key in buffered for key in keys])

    def missing(self, keys: Sequence[str]) -> list[str]:
        """The keys that are neither buffered nor in the newest version, each once."""
        distinct = list(dict.fromkeys(keys))
        if not self.contains(distinct).all():
            self.refresh()
        return [
            key for key, here in zip(distinct, self.contains(distinct), strict=True) if not here
        ]

    @property
    def unreadable(self) -> frozenset[str]:
        return frozenset(self._lookup.unreadable)

    def has_repeats(self, version: int | None = None) -> bool:
        """As `KeyLookup.has_repeats`; each of the rows is as good."""
        return self._lookup.has_repeats(version)

    def repeats(self) -> int:
        return len(self._lookup.repeated_keys())

    def append(
        self, records: Sequence[ParseRecord], transaction: Transaction | None = None
    ) -> bool:
        """Append records in one durable commit; ``False`` if the transaction was applied before."""
        if not records and transaction is None:
            return False
        written = self.table.append(encode_parses(records), transaction, row_group=ROW_GROUP)
        self._lookup.expire()
        return written

    def keep(self, records: Sequence[ParseRecord]) -> None:
        """Write those again that an eviction or a deletion took since they were read or written.

        For records that examples refer to, once these are committed: an eviction under way puts
        back what it finds to be needed, a deletion under way deletes the examples, and either that
        ended before did not see the examples.
        """
        if not records:
            return
        self._lookup.refresh(force=True)
        there = self.contains([record.key for record in records])
        self.append([x for x, is_there in zip(records, there, strict=True) if not is_there])

    def put(self, record: ParseRecord, durable: bool = False) -> None:
        """Write one record with the next group commit; readers of this store see it immediately.

        With ``durable``, wait for the commit; if it fails, the record stays buffered.
        """
        check_record(record)
        generation = self._cache.generation
        self._buffer.put(record, durable)
        self._cache.put_many([record], generation)

    def offer(self, record: ParseRecord) -> bool:
        """As `put`, but never waits: ``True`` if there was room for the record."""
        check_record(record)
        generation = self._cache.generation
        taken = self._buffer.offer(record)
        if taken:
            self._cache.put_many([record], generation)
        return taken

    def delete(self, keys: Sequence[str]) -> None:
        """Remove parses in one commit; older versions of the table keep them until a vacuum.

        Examples that refer to them must have been deleted before.
        """
        self.flush()
        self.table.delete("key", keys, row_group=ROW_GROUP)
        self.refresh()

    def keys_of_texts(self, texts: Collection[str]) -> list[str]:
        """Keys of all parses of these texts: of any parser, language and mode. Reads every text."""
        self.flush()
        files = self.table.snapshot().files
        if not files:
            return []
        for fault in self._reader.unreadable(file.path for file in files).values():
            raise fault
        rows = arrow_dataset(self.table.location, files, PARSES.schema)
        same = pc.field("text").isin(pa.array(list(texts), pa.string()))
        keys = rows.to_table(columns=["key"], filter=same)["key"].to_pylist()
        return sorted(dict.fromkeys(keys))

    @property
    def generation(self) -> int:
        """Grows when a look at the table finds that rows may have been removed from it.

        What was made of its parses before then, such as a cached answer, may have to go.
        """
        return self._cache.generation

    def refresh(self) -> None:
        """Look at the table's newest version, and forget what other processes deleted."""
        self._lookup.refresh(force=True)

    def compact(self) -> None:
        """Keep one row of each key, and join small files, even if repeated rows must be left."""
        try:
            repeated = self._lookup.repeated_keys()
            for start in range(0, len(repeated), REPLACED):
                some = repeated[start : start + REPLACED]
                self.table.replace(partial(self._one_of_each, some), "key", row_group=ROW_GROUP)
        finally:
            self.table.compact(row_group=ROW_GROUP)

    def _one_of_each(self, keys: Sequence[str]) -> pa.Table:
        self.refresh()
        return encode_parses(list(self._read(keys).values()))

    def check(self) -> None:
        """Raise `StoreError` if the table cannot be read, or the last group commit failed."""
        self.contains(["0" * 32])
        if self.failure is not None:
            raise StoreError(f"parses cannot be committed: {self.failure}")

    @property
    def failure(self) -> Exception | None:
        """Error of the last group commit; ``None`` as soon as one has succeeded again."""
        return self._buffer.failure

    def flush(self) -> None:
        self._buffer.flush()

    def close(self) -> None:
        try:
            self._buffer.close()
        finally:
            self._reader.close()

    def _forget_removed(self) -> None:
        """Drop from memory what is neither in the table nor on its way there."""

        def holds(keys: Sequence[str]) -> NDArray[np.bool_]:
            buffered = self._buffer.get_many(keys)
            return np.logical_or(self._lookup.holds(keys), [key in buffered for key in keys])

        self._cache.keep_only(holds)

    def _commit(self, records: Sequence[ParseRecord]) -> None:
        """Append a group and refresh the index here, so that no reader has to wait for it."""
        self.append(records)
        with suppress(StoreError):  # the commit stands; the next reader gets the error
            self._lookup.refresh()

    def _read(self, keys: Sequence[str]) -> dict[str, ParseRecord]:
        if not keys:
            return {}
        if len(keys) == 1:
            return self._present(lambda: self._read_one(keys[0]))
        return self._present(lambda: self._read_many(keys, self._unpacked_rows))

    def _present(self, read: Callable[[], T]) -> T:
        """Read from the files that exist; parses in unreadable ones count as missing.

        Keys that are known are not looked up in the log, so a compaction may have passed unnoticed
        for so long that the old files were vacuumed.
        """
        gone: set[str] = set()
        while True:
            try:
                return read()
            except UnreadableFileError as error:
                if isinstance(error, FileGoneError) and error.path not in gone:
                    gone.add(error.path)
                    self._lookup.refresh(force=True)
                else:
                    self._lookup.skip(error)

    def _read_one(self, key: str) -> dict[str, ParseRecord]:
        """As `_read_many`, of one key, without what only many are worth."""
        place = self._lookup.find_one(key)
        if place is None:
            return {}
        packed = self._reader.row(self._lookup.path(place[0]), place[1], _PACKED)["record"]
        return {key: unpack_record(key, packed)}

    def _read_many(
        self, keys: Sequence[str], read: Callable[[str, Sequence[str], NDArray[np.int32]], list[T]]
    ) -> dict[str, T]:
        addresses = self._lookup.find(keys)
        found: dict[str, T] = {}
        for file, positions in group_by_file(addresses):
            here = [keys[position] for position in positions.tolist()]
            rows = read(self._lookup.path(file), here, addresses.row[positions])
            found.update(zip(here, rows, strict=True))
        return found

    def _unpacked_rows(
        self, path: str, keys: Sequence[str], rows: NDArray[np.int32]
    ) -> list[ParseRecord]:
        return unpack_parses(keys, self._reader.rows(path, rows, _PACKED)["record"])

    def _packed_rows(self, path: str, _keys: Sequence[str], rows: NDArray[np.int32]) -> list[bytes]:
        found: list[bytes] = self._bulk.rows(path, rows, _PACKED)["record"].to_pylist()
        pa.default_memory_pool().release_unused()  # else Arrow keeps what a file took
        return found

    def _word_counts(self, path: str, _keys: Sequence[str], rows: NDArray[np.int32]) -> list[int]:
        heads, _ = list_parts(self._bulk.rows(path, rows, ["head"])["head"])
        counts: list[int] = np.diff(heads).tolist()
        return counts


class RecordCache:
    """Keeps the decoded records used last, at most ``size`` of them. Safe for threads.

    Attributes:
        generation: Grows whenever records were forgotten because they are no longer stored.
    """

    def __init__(self, size: int) -> None:
        self.generation = 0
        self._size = size
        self._items: OrderedDict[str, ParseRecord] = OrderedDict()
        self._lock = threading.Lock()

    def get_many(self, keys: Sequence[str]) -> dict[str, ParseRecord]:
        with self._lock:
            found = {key: self._items[key] for key in keys if key in self._items}
            for key in found:
                self._items.move_to_end(key)
        return found

    def keep_only(self, holds: Callable[[Sequence[str]], NDArray[np.bool_]]) -> None:
        """Forget the records whose keys are not held any more, and begin a generation."""
        with self._lock:
            self.generation += 1
            keys = list(self._items)
            for key, held in zip(keys, holds(keys).tolist(), strict=True):
                if not held:
                    del self._items[key]

    def put_many(self, records: Iterable[ParseRecord], generation: int | None = None) -> None:
        """Keep records, unless a newer generation than theirs began: they may be deleted."""
        with self._lock:
            if generation not in (None, self.generation):
                return
            for record in records:
                self._items[record.key] = record
                self._items.move_to_end(record.key)
            while len(self._items) > self._size:
                self._items.popitem(last=False)
