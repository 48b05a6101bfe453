"""Files of this machine that can be made again: a folder that is bounded in bytes.

They are copies of whole files of remote stores, and arrays that take long to make, such as the
sorted keys of a table. Files of a store never change once written, so a copy stays true. A copy is
made under another name and renamed when it is whole; readers and writers of all processes use
file locks, which end with the process that holds them.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import pyarrow as pa
from numpy.typing import NDArray

from featurestore.tables.encode.columns import arrow_of, numpy_of
from syntax.errors import SpecError
from syntax.strict_json import parse_json

CACHE_DIR: Final = "PARSEBANK_CACHE_DIR"
CACHE_BYTES: Final = "PARSEBANK_CACHE_BYTES"
DEFAULT_BYTES: Final = 10_000_000_000

_CHUNK: Final = 16 << 20

_LOOK_AGAIN: Final = 0.02

_PART: Final = ".part"
_ARRAYS: Final = re.compile(r"(\d+)-(\w+)")
_ABOUT: Final = b"parsebank.about"
_LOG: Final = logging.getLogger(__name__)


class _Copy(NamedTuple):
    """A copy, whole or not, that counts as whole against the bound."""

    used: float
    path: Path
    size: int


@dataclass(frozen=True)
class KeptArrays:
    """Arrays that lie in a file of this machine, mapped into memory.

    Attributes:
        arrays: The columns by name, all of one length; those of two dimensions, too.
        about: JSON that was kept with them.
        source: The open file, which stays on the disk for as long.
    """

    word: str
    size: int
    arrays: Mapping[str, NDArray[Any]]
    about: Mapping[str, Any]
    source: pa.NativeFile


class _LocalFaultError(Exception):
    """This machine's disk, not the store, is at fault: the file can still be read directly."""


class FileCache:
    """Copies of files by their URLs; those used longest ago go first. Safe for processes.

    A file lies in ``<hash of its URL>/<its bytes>``, so that one of another size is not taken for
    whole; while it is fetched, ``.part`` follows the name. A fetch that was killed is continued by
    the next one. A copy in use is never removed. Arrays that are kept for a URL lie in such a
    folder, too, as ``<bytes>-<word>``.
    """

    def __init__(self, folder: Path, max_bytes: int, chunk: int = _CHUNK) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self._chunk = chunk
        self._has_warned = False

    def open(self, url: str) -> pa.OSFile | None:
        """The copy of a file, which stays as long as it is open; ``None`` if there is none."""
        path = self._whole(url)
        return None if path is None else _open_shared(path, pa.OSFile)

    def remove(self, url: str) -> None:
        path = self._whole(url)
        if path is not None:
            path.unlink(missing_ok=True)

    def kept(self, url: str) -> list[str]:
        """Words under which arrays were kept for a URL."""
        return sorted(self._arrays(url))

    def read(self, url: str, word: str) -> KeptArrays | None:
        """Arrays that were kept for a URL; ``None`` if they are not there."""
        path = self._arrays(url).get(word)
        file = None if path is None else _open_shared(path, pa.memory_map)
        if path is None or file is None:
            return None
        try:
            return _read_arrays(word, file)
        except (OSError, pa.ArrowException):
            path.unlink(missing_ok=True)
            return None

    def _arrays(self, url: str) -> dict[str, Path]:
        """The whole files of the arrays that were kept for a URL, by word."""
        folder = self._place(url)
        names = filter(None, map(_ARRAYS.fullmatch, _names(folder)))
        whole = (name for name in names if _size(folder / name[0]) == int(name[1]))
        return {name[2]: folder / name[0] for name in whole}

    def keep(
        self, url: str, word: str, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]
    ) -> KeptArrays | None:
        """Keep arrays of one length and JSON about them; return both, or ``None`` without room."""
        table = pa.record_batch({name: _column(values) for name, values in arrays.items()})
        table = table.replace_schema_metadata({_ABOUT: json.dumps(about)})
        counted = pa.MockOutputStream()
        _write_table(counted, table)
        try:
            part = self._reserve(url, counted.size(), f"{counted.size()}-{word}")
            if part is None:
                return None
            with part.open("r+b") as draft:
                fcntl.flock(draft, fcntl.LOCK_SH)  # or it would count as unused
                _write_table(draft, table)
                draft.flush()
                os.fsync(draft.fileno())
            with self._alone():
                part.rename(part.with_suffix(""))
        except (OSError, _LocalFaultError):
            return None
        return self.read(url, word)

    def drop(self, url: str, kept: KeptArrays) -> None:
        """Remove arrays that were kept for a URL, unless others use them."""
        # What is mapped stays locked, even after the file is closed.
        fcntl.flock(kept.source.fileno(), fcntl.LOCK_UN)
        kept.source.close()
        _remove_unused(self._place(url) / f"{kept.size}-{kept.word}")

    @contextmanager
    def making(self, url: str) -> Iterator[None]:
        """Wait until no other process keeps arrays for a URL, where the folder can be written."""
        with ExitStack() as stack:
            with suppress(OSError):
                self._place(url).mkdir(parents=True, exist_ok=True)
                lock = stack.enter_context((self._place(url) / "lock").open("a"))
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def fetch(
        self,
        url: str,
        opened: Callable[[], pa.NativeFile],
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Copy a file, unless there is a copy; ``True`` if there is one now.

        There is none, which is logged once, where it finds no room beside copies in use, or the
        folder cannot be written. Once ``is_wanted`` returns ``False``, the next fetch continues.
        """
        if self._whole(url) is not None:
            return True
        with opened() as source:
            try:
                return self._copy(url, source, source.size(), is_wanted)
            except _LocalFaultError as fault:
                self._warn(url, str(fault))
                return False

    def _copy(
        self, url: str, source: pa.NativeFile, size: int, is_wanted: Callable[[], bool]
    ) -> bool:
        while is_wanted():
            part = self._reserve(url, size)
            if part is None:
                room = f"its {size} bytes find no room in {self.max_bytes} ({CACHE_BYTES})"
                self._warn(url, room)
                return False
            with _locked(part, is_wanted) as draft:
                if draft is not None and self._whole(url) is not None:
                    part.unlink()  # another process finished between the two looks
                elif draft is not None and self._fill(draft, source, size, is_wanted):
                    with self._alone():  # a count of the copies would miss one that is renamed
                        part.rename(part.with_suffix(""))
            if self._whole(url) is not None:
                return True
        return False

    def _reserve(self, url: str, size: int, name: str = "") -> Path | None:
        """The draft of a copy, which counts from now on; ``None`` without room for it."""
        part = self._place(url) / f"{name or size}{_PART}"
        try:
            with self._alone():
                if not part.exists():
                    if not self._make_room(size):
                        return None
                    part.parent.mkdir(exist_ok=True)
                    part.touch()
        except OSError as error:
            raise _LocalFaultError(str(error)) from error
        return part

    def _fill(
        self, draft: IO[bytes], source: pa.NativeFile, size: int, is_wanted: Callable[[], bool]
    ) -> bool:
        # A chunk is on the disk before the next one begins; nothing is known of the last.
        done = max(0, os.fstat(draft.fileno()).st_size - 1) // self._chunk * self._chunk
        source.seek(done)
        while done < size and is_wanted():
            chunk = source.read(min(self._chunk, size - done))
            if not chunk:
                raise OSError(f"it ended after {done} of {size} bytes")
            _write(draft, done, chunk)
            done += len(chunk)
        return done == size

    def _make_room(self, size: int) -> bool:
        """Remove what was used longest ago, and is not in use, until ``size`` more fit."""
        if size > self.max_bytes:
            return False
        copies = sorted(self._copies())
        total = sum(copy.size for copy in copies)
        for copy in copies:
            if total + size <= self.max_bytes:
                break
            total -= copy.size if _remove_unused(copy.path) else 0
        return total + size <= self.max_bytes

    def _copies(self) -> Iterator[_Copy]:
        for folder in self.folder.iterdir():
            for path in folder.iterdir() if folder.is_dir() else ():
                size = path.name.removesuffix(_PART).partition("-")[0]
                with suppress(FileNotFoundError):
                    if size.isdecimal():
                        yield _Copy(path.stat().st_mtime, path, int(size))

    def _whole(self, url: str) -> Path | None:
        """The copy of a file; one that is not as long as it should be is removed."""
        for name in _names(self._place(url)):
            path = self._place(url) / name
            if name.isdecimal() and _size(path) == int(name):
                return path
            if name.isdecimal():
                path.unlink(missing_ok=True)
        return None

    def _place(self, url: str) -> Path:
        return self.folder / hashlib.blake2b(url.encode(), digest_size=16).hexdigest()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock under which room is made and copies are completed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _warn(self, url: str, reason: str) -> None:
        if not self._has_warned:
            _LOG.warning("%s is not copied to %s but read directly: %s", url, self.folder, reason)
        self._has_warned = True


def file_cache(folder: str | Path | None, max_bytes: int | None) -> FileCache | None:
    """The cache that a user asks for, by arguments or the environment; ``None`` for none."""
    bound = _bound(max_bytes)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    default = Path(base) / "parsebank" / "shards"
    chosen = folder or os.environ.get(CACHE_DIR) or default
    return FileCache(Path(chosen).expanduser().absolute(), bound) if bound else None


def _bound(max_bytes: int | None) -> int:
    given = os.environ.get(CACHE_BYTES) if max_bytes is None else str(max_bytes)
    if not given:
        return DEFAULT_BYTES
    if not given.isdecimal():
        name = CACHE_BYTES if max_bytes is None else "cache_bytes"
        raise SpecError(f"{name} is {given}; give a number of bytes, or 0 for no local copies")
    return int(given)


@contextmanager
def _locked(part: Path, is_wanted: Callable[[], bool]) -> Iterator[IO[bytes] | None]:
    try:
        draft = part.open("r+b")
    except FileNotFoundError:
        yield None
        return
    with draft:
        is_ours = _lock(draft, is_wanted) and _is_at(draft.fileno(), part)
        yield draft if is_ours else None


def _lock(draft: IO[bytes], is_wanted: Callable[[], bool]) -> bool:
    while is_wanted():
        with suppress(BlockingIOError):
            fcntl.flock(draft, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_LOOK_AGAIN)
    return False


def _write(draft: IO[bytes], start: int, chunk: bytes) -> None:
    try:
        draft.truncate(start)
        draft.seek(start)
        draft.write(chunk)
        draft.flush()
        os.fsync(draft.fileno())
    except OSError as error:
        Path(draft.name).unlink(missing_ok=True)
        raise _LocalFaultError(str(error)) from error


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names alone
    except OSError:
        return []


def _open_shared(path: Path, opened: Callable[[str], pa.NativeFile]) -> pa.NativeFile | None:
    try:
        file = opened(str(path))
    except OSError:
        return None
    fcntl.flock(file.fileno(), fcntl.LOCK_SH)
    if not _is_at(file.fileno(), path):
        file.close()
        return None
    with suppress(OSError):  # the folder may be another user's
        os.utime(path)
    return file


def _read_arrays(word: str, file: pa.NativeFile) -> KeptArrays | None:
    table = pa.ipc.open_file(file).get_batch(0)
    about = (table.schema.metadata or {}).get(_ABOUT)
    if about is None:
        return None
    arrays = {name: _values(table[name]) for name in table.schema.names}
    return KeptArrays(word, file.size(), arrays, parse_json(about), file)


def _column(values: NDArray[Any]) -> pa.Array:
    flat = arrow_of(values.reshape(-1))
    return flat if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, values.shape[1])


def _values(column: pa.Array) -> NDArray[Any]:
    if pa.types.is_fixed_size_list(column.type):
        return numpy_of(column.flatten()).reshape(-1, column.type.list_size)
    return numpy_of(column)


def _write_table(file: pa.NativeFile | IO[bytes], table: pa.RecordBatch) -> None:
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_batch(table)


def _remove_unused(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    with suppress(OSError):
        path.parent.rmdir()
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1
