"""Eviction of the oldest parses that no example needs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from featurestore.records import key_bytes
from featurestore.store import FeatureStore
from featurestore.tables.encode.columns import list_parts
from featurestore.tables.encode.parses import decode_parses
from featurestore.tables.files import FileReader, UnreadableFileError
from featurestore.tables.index import KeyIndex, keys_of
from featurestore.tables.parses import ROW_GROUP
from featurestore.tables.schema import PARSES
from featurestore.tables.snapshot import DataFile, arrow_dataset
from syntax.errors import SpecError

_AT_ONCE: Final = 100_000

_SLACK: Final = 0.01
"""Share of the bound that is left free, so that a round more for a few rows is rare."""


@dataclass
class Evicted:
    """Result of an eviction from the table ``parses``.

    Attributes:
        bytes_before, bytes_after: Size of the newest version's files; ``bytes_after`` is an
            estimate after a dry run.
        evicted: Different parses that went.
        needed: Different parses that examples refer to; they stay.
        restored: Parses, not among the evicted, that came back for examples appended meanwhile.
    """

    max_bytes: int
    bytes_before: int
    bytes_after: int
    rows_before: int
    evicted: int = 0
    needed: int = 0
    restored: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def evict_parses(
    store: FeatureStore, max_bytes: int, dry_run: bool = False, spare_hours: float = 1.0
) -> Evicted:
    """Delete the oldest parses that no example needs, until the table is within a bound.

    An example needs its parses if it belongs to the newest version of a dataset or to a pinned
    one. Parses are as old as the file they lie in; of a file that joins others, those of newer
    files are the newer ones. Those in files younger than ``spare_hours`` stay: their examples may
    be on their way. Older versions of the table keep their files until they are vacuumed.

    Raises:
        StoreBusyError: Writers kept winning; what was deleted so far stays deleted.
    """
    for name, value in (("max_bytes", max_bytes), ("spare_hours", spare_hours)):
        if not value >= 0:
            raise SpecError(f"`{name}={value}` must not be negative")
    snapshot = store.parses.table.snapshot()
    size = _size(snapshot.files)
    report = Evicted(max_bytes, size, size, sum(file.rows for file in snapshot.files))
    if size > max_bytes:
        examples, needed = _Examples(store), KeyIndex()
        needed.add(examples.new_keys(), 0)
        report.needed = len(needed)
        before = 1000 * (time.time() - 3600 * spare_hours)
        old = [file for file in snapshot.files if spare_hours == 0 or file.written < before]
        gone = _evict_oldest(store, _oldest(store, old, needed), report, dry_run)
        if not dry_run and gone:
            report.restored = _restore(store, snapshot.version, gone, examples.new_keys())
        report.evicted = len(gone) - report.restored
    return report


def _evict_oldest(
    store: FeatureStore, candidates: Iterator[tuple[str, float]], report: Evicted, dry_run: bool
) -> list[str]:
    """Delete in rounds, because the size of a rewritten file is known only afterwards."""
    gone: list[str] = []
    while report.bytes_after > report.max_bytes:
        excess = report.bytes_after - (1 - _SLACK) * report.max_bytes
        keys, freed = _taken(candidates, excess)
        if not keys:
            break
        gone.extend(keys)
        report.bytes_after -= freed
        if not dry_run:
            for start in range(0, len(keys), _AT_ONCE):
                some = keys[start : start + _AT_ONCE]
                store.parses.table.delete("key", some, row_group=ROW_GROUP)
            report.bytes_after = _size(store.parses.table.snapshot().files)
    return gone


def _restore(store: FeatureStore, version: int, gone: list[str], late: NDArray[np.uint64]) -> int:
    """Append the evicted parses that examples appended in the meantime refer to."""
    index = KeyIndex()
    index.add(late, 0)
    missed = np.flatnonzero(index.find(keys_of(key_bytes(gone))).found)
    if not len(missed):
        return 0
    table = store.parses.table
    files = arrow_dataset(table.location, table.snapshot(version).files, PARSES.schema)
    wanted = pa.array([gone[at] for at in missed.tolist()])
    rows = files.to_table(filter=pc.field("key").isin(wanted))
    store.parses.append(decode_parses(rows))
    return len(missed)


def _taken(candidates: Iterator[tuple[str, float]], excess: float) -> tuple[list[str], int]:
    keys, freed = [], 0.0
    for key, size in candidates:
        keys.append(key)
        freed += size
        if freed >= excess:
            break
    return list(dict.fromkeys(keys)), round(freed)


def _oldest(
    store: FeatureStore, files: Sequence[DataFile], needed: KeyIndex
) -> Iterator[tuple[str, float]]:
    """The keys that may go, the oldest first, with an estimate of their bytes in the file."""
    reader = FileReader(store.parses.table.location)
    for file in sorted(files, key=lambda file: (file.written, file.path)):
        keys = reader.columns(file.path, ["key"])["key"].to_pylist()
        free = ~needed.find(keys_of(key_bytes(keys))).found
        for row in np.flatnonzero(free)[::-1].tolist():  # a join puts newer rows first
            yield keys[row], file.size / file.rows


class _Examples:
    def __init__(self, store: FeatureStore) -> None:
        self._store = store
        self._seen: set[tuple[str, str]] = set()

    def new_keys(self) -> NDArray[np.uint64]:
        """Keys in the files that were not there the last time, each once. *Shape:* (N, 2)."""
        found = [keys for keys in self._new() if len(keys)]
        return np.unique(np.concatenate(found), axis=0) if found else np.empty((0, 2), np.uint64)

    def _new(self) -> Iterator[NDArray[np.uint64]]:
        for card, table in self._store.features.tables():
            versions = {None, *self._store.pins.versions(card.path, "evict again")}
            files = {file.path for version in versions for file in table.snapshot(version).files}
            newest = {file.path for file in table.snapshot().files}
            reader = FileReader(table.location)
            for path in sorted(files):
                if (card.path, path) not in self._seen:
                    self._seen.add((card.path, path))
                    try:
                        rows = reader.columns(path, ["parse_keys"])
                    except UnreadableFileError as error:
                        if path in newest:
                            raise
                        raise UnreadableFileError(  # a repair leaves older versions as they are
                            f"{path} of {card.path} is damaged or gone, and only a pinned version "
                            "has it: forget its pin (`parsebank store pins`, `parsebank store "
                            "unpin NAME`), and evict again",
                            path,
                        ) from error
                    _, values = list_parts(rows["parse_keys"])
                    yield keys_of(key_bytes(list(dict.fromkeys(values.to_pylist()))))


def _size(files: Sequence[DataFile]) -> int:
    return sum(file.size for file in files)
