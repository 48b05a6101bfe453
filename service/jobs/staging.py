"""Staging: uploaded examples as Parquet files, until their shards are done.

One folder per job holds one file per shard, and `repeats.npy` with the positions of repeated
examples. The folder is durable before the job is acknowledged. During an upload its process locks
the folder, which distinguishes uploads from orphans. Replicas may share the area; a lock beside it
prevents one from removing an upload that another starts.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from service.jobs.lines import TextFinder
from service.settings import Settings
from syntax.errors import StoreError
from syntax.files import sync

SHARD_BYTES: Final = 32 * 2**20
"""Largest shard in bytes, so that long texts do not fill the memory."""

LAST_SHARE: Final = 3
"""The last lines of a job are split into parts, each a third of the rest, so that workers finish
at about the same time and share small jobs."""

SMALLEST_PART: Final = 8
"""Such a part has at least an eighth of a shard, because each costs its commits."""

LONGEST: Final = 2
"""Largest factor by which lines that share texts may exceed a shard's segments."""

_LOCK = "uploading"
_REPEATS = "repeats.npy"
_SCHEMA = pa.schema(
    {"position": pa.int64(), "line": pa.int64(), "key": pa.string(), "body": pa.string()}
)


class StagedShardError(StoreError):
    """A staged shard is damaged."""


class StagedShardMissingError(StoreError):
    """A staged shard is missing, or this host does not see it (yet)."""


@dataclass(frozen=True, slots=True)
class StagedLine:
    """One checked line of an upload.

    Attributes:
        position: Index among the job's lines, 0-based.
        line: Line number in the upload, 1-based.
        key: Fingerprint of the example; equal examples have equal keys.
        is_repeat: An equal line occurs earlier.
    """

    position: int
    line: int
    key: str
    body: str
    is_repeat: bool = False


class StagingArea:
    """The folder with one sub-folder of staged shards per job; created when missing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = root.with_name(f"{root.name}.lock")
        root.mkdir(parents=True, exist_ok=True)

    @classmethod
    def of(cls, settings: Settings) -> StagingArea:
        return cls(settings.state_dir / "staging")

    def begin(self, job: str, shard_segments: int) -> Upload:
        with self.locked():
            return Upload(self.folder(job), shard_segments)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from starting or removing an upload during the block."""
        with self._lock.open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def has(self, job: str) -> bool:
        """A job's upload still exists."""
        return (self.folder(job) / _REPEATS).exists()

    def may_hold(self, job: str, text: str) -> bool:
        """A job's upload may hold a text; also true for a damaged upload."""
        finder = TextFinder(text)
        try:
            for path in sorted(self.folder(job).glob("shard-*.parquet")):
                with _damage_named(path.name):
                    for batch in pq.ParquetFile(path).iter_batches(columns=["body"]):
                        if any(map(finder.is_in, batch["body"].to_pylist())):
                            return True
        except FileNotFoundError:  # the job has ended meanwhile
            return False
        except StagedShardError:
            return True
        return False

    def folder(self, job: str) -> Path:
        return self.root / job

    def sweep(self, needed: Callable[[], Set[str]]) -> list[str]:
        """Remove the folders of ended jobs and of uploads whose process died.

        ``needed`` gives the jobs whose input is still needed. It is called after the look at the
        locks: a folder that is unlocked then belongs to a known job or to none.
        """
        with self.locked():
            unlocked = [path for path in self.root.iterdir() if not _is_locked(path)]
            keep = needed() if unlocked else set()
            unused = [path for path in unlocked if path.name not in keep]
            for path in unused:
                shutil.rmtree(path)
        return sorted(path.name for path in unused)


_Row = tuple[int, int, str, str]
"""Position, line, key and body, as `_SCHEMA` has them."""


@dataclass(slots=True)
class _Lines:
    """Checked lines in memory; a ``joined`` line belongs with the previous one."""

    rows: list[_Row] = field(default_factory=list)
    joined: list[bool] = field(default_factory=list)
    segments: int = 0
    bytes: int = 0

    def add(self, row: _Row, segments: int, joined: bool) -> None:
        self.rows.append(row)
        self.joined.append(joined)
        self.segments += segments
        self.bytes += len(row[-1])

    def before(self, others: _Lines) -> _Lines:
        # A split between two shards is always allowed.
        return _Lines(
            self.rows + others.rows,
            [*self.joined, *(at > 0 and joined for at, joined in enumerate(others.joined))],
            self.segments + others.segments,
            self.bytes + others.bytes,
        )


def _cuts(left: _Lines, shard_segments: int) -> list[int]:
    """Bounds of the last parts of a job: where each starts, and the end."""
    cuts, end = [0], len(left.rows)
    segments = -(-shard_segments // SMALLEST_PART)
    smallest = max(1, segments * end // max(1, left.segments))
    while cuts[-1] < end:
        at = cuts[-1] + max(smallest, -(-(end - cuts[-1]) // LAST_SHARE))
        while at < end and left.joined[at]:
            at += 1
        cuts.append(min(at, end))
    return cuts


class Upload:
    """Writes the shards of one job; memory is bounded by two shards.

    A full shard is held until the next one is full too, because the rest at the end is split into
    parts of decreasing size.
    """

    def __init__(self, folder: Path, shard_segments: int) -> None:
        self._folder = folder
        self._shard_segments = shard_segments
        self._held = _Lines()
        self._taken = _Lines()
        self._keys = bytearray()
        self.lines = 0
        self.shards = 0
        folder.mkdir(parents=True)
        self._lock = _lock(folder / _LOCK)

    @property
    def name(self) -> str:
        return self._folder.name

    def is_full(self, joined: bool = False) -> bool:
        """The lines in memory are a full shard.

        A line may be ``joined``: it shares a text with the previous one. Such lines stay together,
        so that no two workers parse the same text.
        """
        most = self._shard_segments * (LONGEST if joined else 1)
        return self._taken.segments >= most or self._taken.bytes >= SHARD_BYTES

    def add(self, line: int, key: str, body: str, segments: int, joined: bool = False) -> None:
        """Add one checked line to the shard in memory; ``joined`` as in `is_full`."""
        self._taken.add((self.lines, line, key, body), segments, joined)
        self._keys += bytes.fromhex(key)
        self.lines += 1

    def write_shard(self) -> None:
        """Hold the lines in memory as a shard, and write the shard held before to disk."""
        if self._held.rows:
            self._write(self._held.rows)
        self._held, self._taken = self._taken, _Lines()

    def finish(self) -> None:
        """Write the rest in several parts; afterwards the folder survives a power loss."""
        left = self._held.before(self._taken)
        for start, end in pairwise(_cuts(left, self._shard_segments)):
            self._write(left.rows[start:end])
        path = self._folder / _REPEATS
        np.save(path, _repeats(np.frombuffer(self._keys, dtype=np.uint64)))
        sync(path)
        sync(self._folder)
        sync(self._folder.parent)

    def _write(self, rows: list[_Row]) -> None:
        columns = [
            pa.array(column, type_)
            for column, type_ in zip(zip(*rows, strict=True), _SCHEMA.types, strict=True)
        ]
        path = shard_path(self._folder, self.shards)
        pq.write_table(
            pa.table(columns, schema=_SCHEMA), path, compression="zstd", write_page_checksum=True
        )
        sync(path)
        self.shards += 1

    def close(self) -> None:
        """Unlock the folder; without a known job it is an orphan."""
        self._lock.close()

    def discard(self) -> None:
        """Remove the folder of a failed upload; a later sweep removes what is left."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self.close()


def shard_path(folder: Path, number: int) -> Path:
    return folder / f"shard-{number:06d}.parquet"


@dataclass(frozen=True, slots=True)
class StagedShard:
    """A staged shard as a Parquet file, small enough to be sent to another machine.

    ``repeats`` are the positions of repeated lines, int64.
    """

    name: str
    content: bytes
    repeats: NDArray[np.int64]

    def lines(self) -> list[StagedLine]:
        """The lines, in order; `StagedShardError` if the file is damaged."""
        with _damage_named(self.name):
            source = pa.BufferReader(self.content)
            rows = pq.read_table(source, page_checksum_verification=True).to_pylist()
            return list(_lines(rows, self.repeats))


def read_shard(folder: Path, number: int) -> StagedShard:
    """Read a shard as bytes; `StagedShardMissingError` if this host does not see the file (yet)."""
    path = shard_path(folder, number)
    try:
        with _damage_named(path.name):
            content = path.read_bytes()
            repeats = np.load(folder / _REPEATS, mmap_mode="r")
            return StagedShard(path.name, content, _within(repeats, content))
    except FileNotFoundError as error:
        raise StagedShardMissingError(
            f"the staged shard {path} is not there; replicas must share one state_dir. If it is "
            "gone, send the backfill again: examples that are stored already are skipped",
            file=path.name,
        ) from error


@contextmanager
def _damage_named(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise StagedShardError(
            f"the staged shard {name} cannot be read ({error}); send the backfill again: "
            "examples that are stored already are skipped",
            file=name,
        ) from error


def _within(repeats: NDArray[np.int64], content: bytes) -> NDArray[np.int64]:
    """The repeats of a job in one shard, whose positions are consecutive."""
    file = pq.ParquetFile(pa.BufferReader(content))
    first = file.metadata.row_group(0).column(0).statistics.min
    begin, end = np.searchsorted(repeats, [first, first + file.metadata.num_rows])
    return np.array(repeats[begin:end])


def _lines(rows: list[dict[str, Any]], repeats: NDArray[np.int64]) -> Iterator[StagedLine]:
    positions = np.asarray([row["position"] for row in rows], dtype=np.int64)
    repeated = np.isin(positions, repeats)
    for row, is_repeat in zip(rows, repeated.tolist(), strict=True):
        yield StagedLine(row["position"], row["line"], row["key"], row["body"], is_repeat)


def _repeats(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Positions of the 128-bit keys that also occur earlier, ascending."""
    high, low = keys.reshape(-1, 2).T
    order = np.lexsort((low, high))
    again = (high[order][1:] == high[order][:-1]) & (low[order][1:] == low[order][:-1])
    return np.sort(order[1:][again]).astype(np.int64)


def _lock(path: Path) -> IO[bytes]:
    file = path.open("wb")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def _is_locked(folder: Path) -> bool:
    try:
        # Opened for writing: network file systems need that for an exclusive lock.
        with (folder / _LOCK).open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
