"""The key index of a table, kept in step with the table's newest version."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from deltalake import DeltaTable
from numpy.typing import NDArray

from featurestore.records import key_bytes
from featurestore.tables.delta import Table
from featurestore.tables.encode.columns import one_array
from featurestore.tables.files import (
    DamagedFileError,
    FileGoneError,
    FileReader,
    UnreadableFileError,
)
from featurestore.tables.index import Addresses, FileKeys, keys_of
from featurestore.tables.snapshot import DataFile, changed_files, in_partition, snapshot_of
from syntax.errors import SpecError
from syntax.fingerprint import fingerprint

_LOG: Final = logging.getLogger(__name__)


class KeyLookup:
    """Finds rows of a table by a key column; only files new since the last look are read.

    Where many keys are known, they are kept on this machine (`FileKeys`), for other processes and
    the next start.

    Args:
        column: Key column of 32 hexadecimal digits; or several columns, the `fingerprint` of whose
            values is the key.
        partition: Index only files with these partition values.
        refresh_seconds: Keys that other processes add may stay unseen for this long.
        on_removal: Called after files went out of use, when the index is up to date.

    Attributes:
        unreadable: Files that cannot be read, and why: their keys count as missing until
            ``parsebank store repair`` takes them out.
    """

    def __init__(
        self,
        table: Table,
        reader: FileReader,
        column: str | Sequence[str],
        partition: Mapping[str, str] | None = None,
        refresh_seconds: float = 0.0,
        on_removal: Callable[[], None] = lambda: None,
    ) -> None:
        self._table = table
        self._reader = reader
        self._column = column
        self._partition = dict(partition or {})
        self._refresh_seconds = refresh_seconds
        self._on_removal = on_removal
        self.unreadable: dict[str, UnreadableFileError] = {}
        name = json.dumps([table.location.uri, column, sorted(self._partition.items())])
        self._keys = FileKeys(table.made, name)
        self._index = self._keys.index
        self._version = -1
        self._handle: DeltaTable | None = None
        self._repeats = False
        self._repeats_version = -1
        self._looked = -float("inf")
        self._lock = threading.Lock()

    def path(self, file: int) -> str:
        return self._keys.path(file)

    def find(self, keys: Sequence[str]) -> Addresses:
        """Addresses of keys; looks at the table's newest version when one is not known yet."""
        wanted = keys_of(key_bytes(list(keys)))
        version = self._version
        found = self._index.find(wanted)
        if found.found.all() or not self._moved_on(version):
            return found
        return self._index.find(wanted)

    def holds(self, keys: Sequence[str]) -> NDArray[np.bool_]:
        """Mask of the keys that the last look found; from memory alone. *Shape:* (N,)."""
        return self._index.find(keys_of(key_bytes(list(keys)))).found

    def find_one(self, key: str) -> tuple[int, int] | None:
        """File and row of one key, as `find`; ``None`` if it is not there."""
        key_bytes([key])
        version = self._version
        found = self._index.find_one(key)
        return self._index.find_one(key) if found is None and self._moved_on(version) else found

    def is_absent(self, keys: Sequence[str]) -> bool:
        """``True`` if the last look shows no key, and needs no new one; from memory alone."""
        if time.monotonic() - self._looked >= self._refresh_seconds:
            return False
        key_bytes(list(keys))
        return all(map(self._index.lacks, keys))

    def has_repeats(self, version: int | None = None) -> bool:
        """``True`` if racing writers left a key in several rows of the newest version.

        Also true of a version that is not the newest any more: that cannot be told.
        """
        self.refresh(force=True)
        with self._lock:
            if self._repeats_version != self._version:
                self._repeats = self._index.has_repeats()
                self._repeats_version = self._version
            return self._repeats or version not in (None, self._version)

    def repeated_keys(self) -> list[str]:
        self.refresh(force=True)
        return [f"{high:016x}{low:016x}" for high, low in self._index.repeats().tolist()]

    def expire(self) -> None:
        """Look again at the next miss, however recent the last look was."""
        self._looked = -float("inf")

    def refresh(self, force: bool = False) -> bool:
        """Take in new files and forget removed ones; ``True`` if anything changed."""
        with self._lock:
            if not force and time.monotonic() - self._looked < self._refresh_seconds:
                return False
            changed = self._follow()
            self._looked = time.monotonic()
            return changed

    def skip(self, error: UnreadableFileError) -> None:
        """Leave out the keys of a file whose rows turned out to be unreadable."""
        with self._lock:
            self._skip(error)

    def _skip(self, error: UnreadableFileError) -> None:
        self._keys.remove([error.path])
        self.unreadable[error.path] = error
        _LOG.error("%s; its keys count as missing until `parsebank store repair`", error)

    def _was_replaced(self, error: UnreadableFileError) -> bool:
        """``True`` if the newest version has the rows elsewhere, for the next look to find."""
        newest = {file.path for file in self._table.snapshot().files}
        return isinstance(error, FileGoneError) and error.path not in newest

    def _moved_on(self, version: int) -> bool:
        """``True`` if a look, of this thread or of another one, has led past a version."""
        self.refresh()
        return self._version != version

    def _follow(self) -> bool:
        self._handle = self._table.follow(self._handle)
        if self._handle is None or self._handle.version() == self._version:
            return False
        snapshot = snapshot_of(self._handle)
        files = {file.path: file for file in in_partition(snapshot.files, self._partition)}
        self.unreadable = {path: why for path, why in self.unreadable.items() if path in files}
        self._take_in(files)
        # New files first: a compaction must at no moment hide a key that a reader looks for.
        dead = self._keys.files - files.keys()
        self._keys.remove(dead)
        self._reader.forget(dead)
        self._version = snapshot.version
        if dead:
            self._on_removal()
        return True

    def _take_in(self, files: Mapping[str, DataFile]) -> None:
        """Take in the keys of new files: from this machine, or from the files themselves."""
        new = sum(files[path].rows for path in self._new(files))
        with self._keys.sharing(files, new) as is_shared:
            if is_shared:
                # Files that are not as they were when their keys were read are looked at anew.
                known = [file for path, file in files.items() if path in self._keys.files]
                self._keys.remove(changed_files(self._table.location, known))
            for path in self._new(files):
                try:
                    self._add(files[path])
                except UnreadableFileError as error:
                    if self._was_replaced(error):
                        raise
                    self._skip(error)

    def _new(self, files: Mapping[str, DataFile]) -> set[str]:
        return files.keys() - self._keys.files - self.unreadable.keys()

    def _add(self, file: DataFile) -> None:
        keys = self._read_keys(file)
        file.check(len(keys), file.size)
        try:
            digests = key_bytes(list(map(str, keys)))  # null is no key either
        except SpecError as error:
            message = f"in {file.path}, as {self._column}: {error}"
            raise DamagedFileError(message, file.path) from error
        self._keys.add(file.path, keys_of(digests))

    def _read_keys(self, file: DataFile) -> list[str]:
        if isinstance(self._column, str):
            rows = self._reader.columns(file.path, [self._column])
            return list(one_array(rows[self._column]).to_pylist())
        rows = self._reader.columns(file.path, self._column)
        values = (rows[name].to_pylist() for name in self._column)
        return [fingerprint(list(key)) for key in zip(*values, strict=True)]


def group_by_file(addresses: Addresses) -> list[tuple[int, NDArray[np.intp]]]:
    positions = np.flatnonzero(addresses.found)
    if not len(positions):
        return []
    order = positions[np.argsort(addresses.file[positions], kind="stable")]
    files, starts = np.unique(addresses.file[order], return_index=True)
    return list(zip(files.tolist(), np.split(order, starts[1:]), strict=True))
