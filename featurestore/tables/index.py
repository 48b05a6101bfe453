"""A key index: sorted runs of 16-byte keys, each pointing at a file and a row.

Runs of many keys are kept on this machine, and mapped into memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from featurestore.tables.file_cache import FileCache, KeptArrays

KEPT_KEYS: Final = 16_384
"""Keys from which on a run is kept: reading fewer from the table takes a fraction of a second."""

_ARRAYS: Final = ("high", "low", "file", "row")
_FORMAT: Final = 1

Keys = NDArray[np.uint64]
"""Keys as two big-endian halves. *Shape:* (N, 2)."""


def keys_of(digests: bytes) -> Keys:
    return np.frombuffer(digests, dtype=">u8").reshape(-1, 2).astype(np.uint64)


@dataclass(frozen=True)
class Addresses:
    """The file and row of each key.

    Attributes:
        file: Number of the file, -1 for an unknown key. *Shape:* (N,), int32.
        row: Row in that file. *Shape:* (N,), int32.
    """

    file: NDArray[np.int32]
    row: NDArray[np.int32]

    @property
    def found(self) -> NDArray[np.bool_]:
        """Mask of the known keys. *Shape:* (N,)."""
        return self.file >= 0


@dataclass(frozen=True)
class Kept:
    """Facts of a run that lies in a file of this machine.

    Attributes:
        rows: Keys of each of the run's files. *Shape:* (F,), int64.
        repeats: Keys that had several rows when the run was made. *Shape:* (K, 2).
        compared: Words of the other runs that ``repeats`` counts in.
    """

    arrays: KeptArrays
    rows: NDArray[np.int64]
    repeats: Keys
    compared: frozenset[str]


@dataclass(frozen=True)
class Run:
    """Keys in ascending order with their addresses.

    Attributes:
        high, low: Halves of the keys. *Shape:* (N,), uint64.
        file: File of each key, counted from ``first``. *Shape:* (N,), int32.
        row: Row in that file. *Shape:* (N,), int32.
        gone: Mask of the files that are no longer active; ``None`` if all are. *Shape:* (F,).
        kept: For a run that lies in a file; ``None`` for one in memory.
    """

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    file: NDArray[np.int32]
    row: NDArray[np.int32]
    first: int = 0
    gone: NDArray[np.bool_] | None = None
    kept: Kept | None = None

    def __len__(self) -> int:
        return len(self.high)

    @property
    def active(self) -> int:
        if self.gone is None or self.kept is None:
            return len(self)
        return int(self.kept.rows[~self.gone].sum())

    def keys(self, where: NDArray[np.intp] | NDArray[np.bool_]) -> Keys:
        return np.stack((self.high[where], self.low[where]), axis=1)

    def repeats(self) -> Keys:
        """Keys that have several rows in the run. *Shape:* (K, 2)."""
        same = (self.high[1:] == self.high[:-1]) & (self.low[1:] == self.low[:-1])
        return self.keys(np.flatnonzero(same))

    def is_gone(self, at: NDArray[np.intp] | int) -> NDArray[np.bool_] | bool:
        return False if self.gone is None else self.gone[self.file[at]]

    def without(self, files: NDArray[np.int32]) -> Run:
        """The run without the keys of some files; one in a file marks them."""
        if self.kept is None:
            return _select(self, ~np.isin(self.file, files))
        numbers = self.first + np.arange(len(self.kept.rows))
        gone = np.isin(numbers, files) | (False if self.gone is None else self.gone)
        return replace(self, gone=gone) if gone.any() else self


class KeyIndex:
    """Finds keys by binary search, at about 2 µs a key among millions.

    New keys form small runs that are merged geometrically, so an index fed by many small commits
    stays cheap to extend; a key takes 24 bytes. Readers see one consistent tuple of runs and take
    no lock; writers must be serialised by the caller.
    """

    def __init__(self) -> None:
        self._runs: tuple[Run, ...] = ()

    def __len__(self) -> int:
        return sum(run.active for run in self._runs)

    @property
    def in_memory(self) -> list[Run]:
        return [run for run in self._runs if run.kept is None]

    @property
    def in_files(self) -> list[Run]:
        return [run for run in self._runs if run.kept is not None]

    def add(self, keys: Keys, file: int) -> None:
        if not len(keys):
            return
        rows = np.arange(len(keys), dtype=np.int32)
        run = _sorted(keys[:, 0], keys[:, 1], np.full(len(keys), file, np.int32), rows)
        # Merge from the end until each run is more than twice as long as the next.
        runs = [*self.in_memory, run]
        while len(runs) > 1 and len(runs[-2]) <= 2 * len(runs[-1]):
            runs[-2:] = [merged(runs[-2:])]
        self._runs = (*self.in_files, *runs)

    def put(self, run: Run, instead: Collection[Run] = ()) -> None:
        """Add a run that lies in a file, in the place of those that it was made of."""
        replaced = set(map(id, instead))
        runs = [*(one for one in self._runs if id(one) not in replaced), run]
        self._runs = tuple(sorted(runs, key=lambda one: (one.kept is None, -len(one))))

    def remove(self, files: Collection[int]) -> None:
        gone = np.asarray(sorted(files), dtype=np.int32)
        left = (run.without(gone) for run in self._runs) if len(gone) else self._runs
        self._runs = tuple(run for run in left if run.active)

    def has_repeats(self) -> bool:
        return len(self.repeats()) > 0

    def repeats(self) -> Keys:
        """Keys that have several rows, each once. *Shape:* (N, 2)."""
        found = [np.empty((0, 2), np.uint64)]
        for number, run in enumerate(self._runs):
            found.append(run.repeats() if run.kept is None else run.kept.repeats)
            others = [one for one in self._runs[:number] if not _were_compared(run, one)]
            found.extend(shared_keys(run, one) for one in others)
        keys = np.unique(np.concatenate(found), axis=0)
        return keys[sum((_count(run, keys) for run in self._runs), np.zeros(len(keys))) > 1]

    def lacks(self, key: str) -> bool:
        """``True`` if a key is surely not there; takes an eighth of the time of `find`."""
        high = np.uint64(int(key[:16], 16))
        places = ((run.high, run.high.searchsorted(high)) for run in self._runs)
        return not any(at < len(halves) and halves[at] == high for halves, at in places)

    def find_one(self, key: str) -> tuple[int, int] | None:
        """File and row of a key, or ``None``; takes a fifth of the time of `find`."""
        high, low = np.uint64(int(key[:16], 16)), np.uint64(int(key[16:], 16))
        for run in self._runs:
            at = int(run.high.searchsorted(high))
            while at < len(run) and run.high[at] == high:
                if run.low[at] == low and not run.is_gone(at):
                    return run.first + int(run.file[at]), int(run.row[at])
                at += 1
        return None

    def find(self, keys: Keys) -> Addresses:
        """Addresses of keys; of several rows with one key, any one. *Shape:* (N, 2) to (N,)."""
        file = np.full(len(keys), -1, dtype=np.int32)
        row = np.zeros(len(keys), dtype=np.int32)
        # In ascending order they meet the same memory again, which is most of the time.
        order = np.argsort(keys[:, 0]) if len(keys) > 1 else np.arange(len(keys))
        ascending = keys[order]
        for run in self._runs:
            position, found = _search(run, ascending)
            file[order[found]] = run.file[position[found]] + np.int32(run.first)
            row[order[found]] = run.row[position[found]]
        return Addresses(file, row)


class FileKeys:
    """The key index of some files, by their paths.

    Where many keys are known, they are kept on this machine, for other processes and the next
    start: these read the keys of new files only, and share what they look at. The runs that are
    kept are a cache: who finds none reads the keys from the table, and keeps them.

    Args:
        name: The table and the column that the keys are of.
    """

    def __init__(self, cache: FileCache | None, name: str) -> None:
        self.index = KeyIndex()
        self._cache = cache
        self._url = f"keys:{name}"
        self._paths: list[str] = []
        self._numbers: dict[str, int] = {}

    @property
    def files(self) -> Set[str]:
        """Paths of the files whose keys are known."""
        return self._numbers.keys()

    def path(self, file: int) -> str:
        return self._paths[file]

    def add(self, path: str, keys: Keys) -> None:
        self._numbers[path] = len(self._paths)
        self._paths.append(path)
        self.index.add(keys, self._numbers[path])

    def remove(self, paths: Collection[str]) -> None:
        self.index.remove([self._numbers.pop(path) for path in paths if path in self._numbers])

    @contextmanager
    def sharing(self, paths: Collection[str], new: int) -> Iterator[bool]:
        """Take in what is kept of files, and keep the keys that are added in between.

        Yields ``False``, and does neither, unless these are many; ``new`` is their number.
        """
        if self._cache is None or not self._are_many(new):
            yield False
            return
        with self._cache.making(self._url):
            self._load(self._cache, paths)
            yield True
            self._keep(self._cache)

    def _are_many(self, new: int) -> bool:
        return new + sum(map(len, self.index.in_memory)) >= KEPT_KEYS

    def _load(self, cache: FileCache, paths: Collection[str]) -> None:
        """Take in kept runs, the longest first; no file is in two of them.

        Runs that are of no use any more are removed.
        """
        kept = (cache.read(self._url, word) for word in cache.kept(self._url))
        for run, files in sorted(filter(None, map(_run_of, kept)), key=lambda one: -one[0].active):
            gone = np.array([path not in paths for path in files], np.bool_)
            run = run.without(np.flatnonzero(gone).astype(np.int32))
            if not self.files.isdisjoint(path for path in files if path in paths):
                continue  # another process may have nothing else
            if 2 * run.active > len(run):
                self._take(run, files)
            else:
                self._drop(cache, run)

    def _keep(self, cache: FileCache) -> None:
        """Put one run in a file in the place of those in memory, and of shorter ones in files."""
        if not self._are_many(0):
            return
        joined, others = self.index.in_memory, self.index.in_files
        while others and len(others[-1]) <= 2 * sum(map(len, joined)):
            joined.append(others.pop())
        kept = self._written(cache, merged(joined), others)
        if kept is None:
            self._cache = None  # without room, what is known stays in memory
            return
        self._take(*kept, instead=joined)
        for run in joined:
            self._drop(cache, run)

    def _take(self, run: Run, files: Sequence[str], instead: Collection[Run] = ()) -> None:
        first = len(self._paths)
        self._paths.extend(files)
        self.index.put(replace(run, first=first), instead)
        gone = np.zeros(len(files), np.bool_) if run.gone is None else run.gone
        numbered = zip(files, range(first, first + len(files)), gone.tolist(), strict=True)
        self._numbers.update({path: number for path, number, is_gone in numbered if not is_gone})

    def _drop(self, cache: FileCache, run: Run) -> None:
        """Remove a run, unless other processes use it; nothing for one in memory."""
        if run.kept is not None:
            cache.drop(self._url, run.kept.arrays)

    def _written(
        self, cache: FileCache, run: Run, others: Sequence[Run]
    ) -> tuple[Run, Sequence[str]] | None:
        """The run out of a file, with its paths; ``None`` without room."""
        rows = np.bincount(run.file, minlength=len(self._paths))
        numbers = np.flatnonzero(rows)
        place = np.zeros(len(rows), np.int32)
        place[numbers] = np.arange(len(numbers), dtype=np.int32)
        repeats = [run.repeats(), *(shared_keys(run, other) for other in others)]
        about = {
            "format": _FORMAT,
            "paths": [self._paths[number] for number in numbers.tolist()],
            "rows": rows[numbers].tolist(),
            "repeats": np.unique(np.concatenate(repeats), axis=0).astype(">u8").tobytes().hex(),
            "compared": [other.kept.arrays.word for other in others if other.kept is not None],
        }
        run = replace(run, file=place[run.file])
        arrays = {name: getattr(run, name) for name in _ARRAYS}
        return _run_of(cache.keep(self._url, uuid4().hex, arrays, about))


def _run_of(kept: KeptArrays | None) -> tuple[Run, Sequence[str]] | None:
    """The run that lies in a file, with the paths of the files whose keys it has."""
    if kept is None or kept.about.get("format") != _FORMAT:
        return None
    facts = Kept(
        arrays=kept,
        rows=np.array(kept.about["rows"], np.int64),
        repeats=keys_of(bytes.fromhex(kept.about["repeats"])),
        compared=frozenset(kept.about["compared"]),
    )
    high, low, file, row = (kept.arrays[name] for name in _ARRAYS)
    return Run(high, low, file, row, kept=facts), kept.about["paths"]


def merged(runs: Sequence[Run]) -> Run:
    """The active keys of several runs as one in memory."""
    parts = [run if run.gone is None else _select(run, ~run.gone[run.file]) for run in runs]
    return _sorted(
        np.concatenate([part.high for part in parts]),
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.file + np.int32(part.first) for part in parts]),
        np.concatenate([part.row for part in parts]),
    )


def shared_keys(first: Run, second: Run) -> Keys:
    shorter, longer = sorted((first, second), key=len)
    keys = shorter.keys(np.arange(len(shorter)))
    return keys[_search(longer, keys)[1]]


def _were_compared(first: Run, second: Run) -> bool:
    """``True`` if the repeats of one of two runs count in those of the other."""
    if first.kept is None or second.kept is None:
        return False
    words = first.kept.arrays.word, second.kept.arrays.word
    return words[0] in second.kept.compared or words[1] in first.kept.compared


def _count(run: Run, keys: Keys) -> NDArray[np.int64]:
    """Number of rows in active files of each key in a run. *Shape:* (N, 2) to (N,)."""
    counts = np.zeros(len(keys), np.int64)
    position, found = _search(run, keys)
    while found.any():
        counts += found
        position, found = _search(run, keys, np.where(found, position + 1, len(run)))
    return counts


def _search(
    run: Run, keys: Keys, position: NDArray[np.intp] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Place of each key in a run, from a position on, and a mask of those in active files."""
    last = len(run) - 1
    if position is None:
        position = np.searchsorted(run.high, keys[:, 0])
    while True:
        at = np.minimum(position, last)
        same_high = (position <= last) & (run.high[at] == keys[:, 0])
        found = same_high & (run.low[at] == keys[:, 1])
        behind = (same_high & (run.low[at] < keys[:, 1])) | (found & run.is_gone(at))
        if not behind.any():
            return at, found
        position = position + behind


def _sorted(
    high: NDArray[np.uint64],
    low: NDArray[np.uint64],
    file: NDArray[np.int32],
    row: NDArray[np.int32],
) -> Run:
    run = Run(high, low, file, row)
    # Upper halves of different keys are hardly ever equal; one column sorts far faster than two.
    ascending = _select(run, np.argsort(high))
    equal = ascending.high[1:] == ascending.high[:-1]
    if (equal & (ascending.low[1:] < ascending.low[:-1])).any():
        return _select(run, np.lexsort((low, high)))
    return ascending


def _select(run: Run, which: NDArray[np.intp] | NDArray[np.bool_]) -> Run:
    return replace(
        run,
        high=run.high[which],
        low=run.low[which],
        file=run.file[which],
        row=run.row[which],
    )
