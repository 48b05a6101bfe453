"""Sorted keys of a table's files, kept on this machine and mapped into memory.

Opening a table then reads the keys of new files only, and processes share what they look at. The
runs are a cache: who finds none reads the keys from the table, and keeps them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final
from uuid import uuid4

import numpy as np
import pyarrow as pa

from featurestore.tables.file_cache import FileCache
from featurestore.tables.index import Kept, Run, keys_of, shared_keys
from featurestore.tables.snapshot import DataFile
from syntax.strict_json import parse_json

KEPT_KEYS: Final = 16_384
"""Keys from which on a run is kept: reading fewer from the table takes a fraction of a second."""

_ABOUT: Final = b"parsebank.run"
_COLUMNS: Final = ("high", "low", "file", "row")
_FORMAT: Final = 1


class RunFiles:
    """The runs that are kept of one key column of one table."""

    def __init__(self, cache: FileCache, name: str) -> None:
        self._cache = cache
        self._url = f"keys:{name}"

    def making(self) -> AbstractContextManager[None]:
        return self._cache.making(self._url)

    def load(
        self, files: Mapping[str, DataFile], known: Collection[str]
    ) -> Iterator[tuple[Run, Sequence[str]]]:
        """Kept runs and the paths of their files, the longest first; no file is in two of them.

        Runs that are of no use any more are removed.
        """
        covered = set(known)
        found = filter(None, map(self._read, self._cache.made(self._url)))
        for run, paths in sorted(found, key=lambda one: one[0].active, reverse=True):
            gone = np.array([path not in files for path in paths], np.bool_)
            run = run.without(run.first + np.flatnonzero(gone).astype(np.int32))
            here = {path for path in paths if path in files}
            if here.isdisjoint(covered) and 2 * run.active > len(run):
                covered |= here
                yield run, paths
            elif here.isdisjoint(known):  # or another process may have nothing else
                self.drop(run)

    def drop(self, run: Run) -> None:
        """Remove a run, unless other processes use it; nothing for one in memory."""
        if run.kept is not None:
            self._cache.drop(self._url, run.kept.name, run.kept.source)

    def write(
        self, run: Run, paths: Sequence[str], others: Sequence[Run]
    ) -> tuple[Run, list[str]] | None:
        """Keep a run; return it out of its file, with its paths, or ``None`` without room."""
        rows = np.bincount(run.file, minlength=len(paths))
        numbers = np.flatnonzero(rows)
        place = np.zeros(len(paths), np.int32)
        place[numbers] = np.arange(len(numbers), dtype=np.int32)
        repeats = [run.repeats(), *(shared_keys(run, other) for other in others)]
        about = {
            "format": _FORMAT,
            "paths": [paths[number] for number in numbers.tolist()],
            "rows": rows[numbers].tolist(),
            "repeats": np.unique(np.concatenate(repeats), axis=0).astype(">u8").tobytes().hex(),
            "compared": [other.kept.name for other in others if other.kept is not None],
        }
        columns = {"high": run.high, "low": run.low, "file": place[run.file], "row": run.row}
        table = pa.record_batch({name: pa.array(values) for name, values in columns.items()})
        table = table.replace_schema_metadata({_ABOUT: json.dumps(about)})
        name = self._cache.keep(self._url, uuid4().hex, table)
        return None if name is None else self._read(name)

    def _read(self, name: str) -> tuple[Run, list[str]] | None:
        found = self._cache.read(self._url, name)
        if found is None:
            return None
        table, source = found
        about = parse_json((table.schema.metadata or {}).get(_ABOUT, b"{}"))
        if about.get("format") != _FORMAT:
            return None
        kept = Kept(
            name=name,
            rows=np.array(about["rows"], np.int64),
            repeats=keys_of(bytes.fromhex(about["repeats"])),
            compared=frozenset(about["compared"]),
            source=source,
        )
        columns = {column: table[column].to_numpy() for column in _COLUMNS}
        return Run(**columns, kept=kept), about["paths"]
