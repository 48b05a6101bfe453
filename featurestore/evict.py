"""A bound on the parse cache: the oldest parses that no example needs go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from featurestore.encode.columns import list_parts
from featurestore.files import FileReader
from featurestore.index import KeyIndex, keys_of
from featurestore.records import key_bytes
from featurestore.store import FeatureStore
from featurestore.tables.parses import ROW_GROUP
from featurestore.tables.snapshot import DataFile
from syntax.errors import SpecError

_AT_ONCE: Final = 100_000
"""Keys that are deleted in one commit."""

_SLACK: Final = 0.01
"""Share of the bound that is left free, so that a round more for a few rows is rare."""


@dataclass
class Evicted:
    """What an eviction did to the table ``parses``.

    Attributes:
        max_bytes: The bound.
        bytes_before, bytes_after: Size of the newest version's files; ``bytes_after`` is an
            estimate after a dry run.
        rows_before: Rows that were there.
        evicted: Different parses that went.
        needed: Different parses that examples refer to; they stay.
    """

    max_bytes: int
    bytes_before: int
    bytes_after: int
    rows_before: int
    evicted: int
    needed: int

    def to_json(self) -> dict[str, Any]:
        """The attributes as plain JSON."""
        return asdict(self)


def evict_parses(store: FeatureStore, max_bytes: int, dry_run: bool = False) -> Evicted:
    """Delete the oldest parses that no example needs, until the table is within a bound.

    An example needs its parses if it belongs to the newest version of a dataset or to a pinned
    one. Parses are as old as the file they lie in, and in one file as the order of its rows.
    Older versions of the table keep their files until they are vacuumed.

    Args:
        store: The store.
        max_bytes: What the files of the newest version may have together.
        dry_run: Delete nothing, and estimate.

    Raises:
        SpecError: A negative bound.
        StoreBusyError: Writers kept winning; what was deleted so far stays deleted.
        StoreError: A table cannot be read or written.
    """
    if max_bytes < 0:
        raise SpecError(f"max_bytes is {max_bytes}; it must not be negative")
    files = store.parses.table.snapshot().files
    size = _size(files)
    report = Evicted(max_bytes, size, size, sum(file.rows for file in files), 0, 0)
    if size > max_bytes:
        needed = _needed(store)
        report.needed = len(needed)
        _evict(store, _oldest(store, files, needed), report, dry_run)
    return report


def _evict(
    store: FeatureStore, candidates: Iterator[tuple[str, float]], report: Evicted, dry_run: bool
) -> None:
    """Delete in rounds: what a rewritten file takes is known only when it is written."""
    while report.bytes_after > report.max_bytes:
        excess = report.bytes_after - (1 - _SLACK) * report.max_bytes
        keys, freed = _taken(candidates, excess)
        if not keys:
            return
        report.evicted += len(keys)
        report.bytes_after -= freed
        if not dry_run:
            _delete(store, keys)
            report.bytes_after = _size(store.parses.table.snapshot().files)


def _delete(store: FeatureStore, keys: list[str]) -> None:
    for start in range(0, len(keys), _AT_ONCE):
        store.parses.table.delete("key", keys[start : start + _AT_ONCE], row_group=ROW_GROUP)


def _taken(candidates: Iterator[tuple[str, float]], excess: float) -> tuple[list[str], int]:
    """The next keys that take so many bytes, each once, and what they take."""
    keys, freed = [], 0.0
    for key, size in candidates:
        keys.append(key)
        freed += size
        if freed >= excess:
            break
    return list(dict.fromkeys(keys)), round(freed)


def _oldest(
    store: FeatureStore, files: tuple[DataFile, ...], needed: KeyIndex
) -> Iterator[tuple[str, float]]:
    """The keys that may go, the oldest first, and what each takes in its file, about."""
    reader = FileReader(store.parses.table.location)
    for file in sorted(files, key=lambda file: (file.written, file.path)):
        keys = reader.columns(file.path, ["key"])["key"].to_pylist()
        free = ~needed.find(keys_of(key_bytes(keys))).found
        for row in np.flatnonzero(free).tolist():
            yield keys[row], file.size / file.rows


def _needed(store: FeatureStore) -> KeyIndex:
    """The keys of the parses that examples refer to, each once."""
    index = KeyIndex()
    found = [keys for keys in _parse_keys(store) if len(keys)]
    if found:
        index.add(np.unique(np.concatenate(found), axis=0), 0)
    return index


def _parse_keys(store: FeatureStore) -> Iterator[NDArray[np.uint64]]:
    pins = store.pins.all().values()
    for card, table in store.features.tables():
        versions = {None, *(pin.version for pin in pins if pin.table == card.path)}
        files = {file.path for version in versions for file in table.snapshot(version).files}
        reader = FileReader(table.location)
        for path in sorted(files):
            _, values = list_parts(reader.columns(path, ["parse_keys"])["parse_keys"])
            keys = dict.fromkeys(values.to_pylist())
            yield keys_of(key_bytes(list(keys)))


def _size(files: tuple[DataFile, ...]) -> int:
    return sum(file.size for file in files)
