"""Uploaded examples, staged as Parquet files until their shards are done.

One folder per job, one file per shard, and `repeats.npy` with the positions of examples that came
before in the same upload. The folder is durable before the job is acknowledged. While an upload
is under way its process holds a lock on the folder, so that orphans can be told from uploads.
Several replicas may share the area; a lock beside it keeps one from removing what another begins.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from syntax.errors import StoreError

SHARD_BYTES: Final = 32 * 2**20
"""A shard is also full at this size, so that long texts do not fill the memory."""

LAST_PARTS: Final = 4
"""The last shard is cut into as many, so that no worker is long at work when the others are done,
and a small job is shared too."""

_LOCK = "uploading"
_REPEATS = "repeats.npy"
_SCHEMA = pa.schema(
    {"position": pa.int64(), "line": pa.int64(), "key": pa.string(), "body": pa.string()}
)


class StagedShardError(StoreError):
    """A staged shard is damaged."""


class StagedShardMissingError(StoreError):
    """A staged shard is not there, or this host does not see it (yet)."""


@dataclass(frozen=True, slots=True)
class StagedLine:
    """One uploaded line that has been checked.

    Attributes:
        position: Its place among the job's lines, 0-based.
        line: Its line number in the upload, 1-based.
        key: Fingerprint of what it asks for; equal for equal examples.
        body: The line itself.
        is_repeat: Whether an equal line came before.
    """

    position: int
    line: int
    key: str
    body: str
    is_repeat: bool = False


class StagingArea:
    """The folder with one sub-folder of staged shards per job.

    Args:
        root: Folder, created when missing.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = root.with_name(f"{root.name}.lock")
        root.mkdir(parents=True, exist_ok=True)

    def begin(self, job: str, shard_segments: int) -> Upload:
        """Start staging a job."""
        with self.at_rest():
            return Upload(self.folder(job), shard_segments)

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """While this lasts, no process begins an upload and none removes one."""
        with self._lock.open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def has(self, job: str) -> bool:
        """Whether a job's upload is still there."""
        return (self.folder(job) / _REPEATS).exists()

    def folder(self, job: str) -> Path:
        """Folder of one job."""
        return self.root / job

    def sweep(self, needed: Callable[[], Set[str]]) -> list[str]:
        """Remove the folders of ended jobs and of uploads whose process died.

        Args:
            needed: Asked for the jobs whose input is still needed. It is asked last: a folder
                that is unlocked by then belongs to a job that is known, or to nobody.
        """
        with self.at_rest():
            unlocked = [path for path in self.root.iterdir() if not _is_locked(path)]
            keep = needed() if unlocked else set()
            unused = [path for path in unlocked if path.name not in keep]
            for path in unused:
                shutil.rmtree(path)
        return sorted(path.name for path in unused)


class Upload:
    """Writes the shards of one job; memory is bounded by one shard.

    Args:
        folder: New folder of the job.
        shard_segments: Segments after which a shard is full.
    """

    def __init__(self, folder: Path, shard_segments: int) -> None:
        self._folder = folder
        self._shard_segments = shard_segments
        self._rows: list[tuple[int, int, str, str]] = []
        self._segments = 0
        self._bytes = 0
        self._keys = bytearray()
        self.lines = 0
        self.shards = 0
        folder.mkdir(parents=True)
        self._lock = _lock(folder / _LOCK)

    @property
    def name(self) -> str:
        """Id of the job."""
        return self._folder.name

    @property
    def is_full(self) -> bool:
        """Whether the lines in memory make a shard."""
        return self._segments >= self._shard_segments or self._bytes >= SHARD_BYTES

    def add(self, line: int, key: str, body: str, segments: int) -> None:
        """Take one checked line into the shard in memory."""
        self._rows.append((self.lines, line, key, body))
        self._keys += bytes.fromhex(key)
        self.lines += 1
        self._segments += segments
        self._bytes += len(body)

    def write_shard(self) -> None:
        """Write the lines in memory as the next shard, through to the disk."""
        self._write(self._rows)
        self._rows, self._segments, self._bytes = [], 0, 0

    def finish(self) -> None:
        """Write what is left, in several parts; afterwards the folder survives a power loss."""
        part = max(1, -(-self._shard_segments // LAST_PARTS))
        lines = max(1, part * len(self._rows) // max(1, self._segments))
        for start in range(0, len(self._rows), lines):
            self._write(self._rows[start : start + lines])
        path = self._folder / _REPEATS
        np.save(path, _repeats(np.frombuffer(self._keys, dtype=np.uint64)))
        _sync(path)
        _sync(self._folder)
        _sync(self._folder.parent)

    def _write(self, rows: list[tuple[int, int, str, str]]) -> None:
        columns = [
            pa.array(column, type_)
            for column, type_ in zip(zip(*rows, strict=True), _SCHEMA.types, strict=True)
        ]
        path = shard_path(self._folder, self.shards)
        pq.write_table(
            pa.table(columns, schema=_SCHEMA), path, compression="zstd", write_page_checksum=True
        )
        _sync(path)
        self.shards += 1

    def close(self) -> None:
        """Let go of the folder; unless its job is known by now, it is an orphan."""
        self._lock.close()

    def discard(self) -> None:
        """Remove the folder: the upload failed. What cannot be removed now is swept later."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self.close()


def shard_path(folder: Path, number: int) -> Path:
    """File of one shard."""
    return folder / f"shard-{number:06d}.parquet"


def read_shard(folder: Path, number: int) -> list[StagedLine]:
    """The lines of one shard.

    Raises:
        StagedShardMissingError: The file is not there; another host may see it, or this one later.
        StagedShardError: It is damaged.
    """
    path = shard_path(folder, number)
    try:
        rows = pq.read_table(path, page_checksum_verification=True).to_pylist()
        repeats = np.load(folder / _REPEATS)
        return list(_lines(rows, repeats))
    except FileNotFoundError as error:
        raise StagedShardMissingError(
            f"the staged shard {path} is not there; replicas must share one state_dir. If it is "
            "gone, send the backfill again: examples that are stored already are skipped",
            file=path.name,
        ) from error
    except (OSError, ValueError, pa.ArrowException) as error:
        raise StagedShardError(
            f"the staged shard {path.name} cannot be read ({error}); send the backfill again: "
            "examples that are stored already are skipped",
            file=path.name,
        ) from error


def _lines(rows: list[dict[str, Any]], repeats: NDArray[np.int64]) -> Iterator[StagedLine]:
    positions = np.asarray([row["position"] for row in rows], dtype=np.int64)
    repeated = np.isin(positions, repeats)
    for row, is_repeat in zip(rows, repeated.tolist(), strict=True):
        yield StagedLine(row["position"], row["line"], row["key"], row["body"], is_repeat)


def _repeats(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Positions of the 128-bit keys that occur at an earlier position too, ascending."""
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
        # For writing, because network file systems lock nothing else exclusively.
        with (folder / _LOCK).open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
