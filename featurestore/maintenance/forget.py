"""Deletion of files and versions out of use from the log of a table.

A version is read from a checkpoint, which lists all files, and the entries after it. The table
library can shorten logs too (``delta.enableExpiredLogCleanup``), but does not know of pins.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from featurestore.tables.delta import Table
from featurestore.tables.location import Location
from featurestore.tables.log import (
    CHECKPOINT,
    ENTRY,
    LOG,
    checkpoint_name,
    entry_name,
    log_names,
    reason,
    versions_of,
)
from syntax.errors import StoreError
from syntax.files import sync

RECENT: Final = 100
"""Newest versions that stay readable, however old they are: a commit under way may read the entries
of commits that came first."""


def forget_files(table: Table, deleted: Sequence[str]) -> None:
    """Write a checkpoint of the newest version that does not list deleted files.

    Later checkpoints are made from it; otherwise each lists every file that was ever replaced. It
    is written once: a reader that knows its size would find another one torn. Where the version has
    a checkpoint already, the next vacuum does this.
    """
    log = table.location.child(LOG)
    if not deleted or table.open() is None:
        return
    with _named_faults(table), tempfile.TemporaryDirectory() as folder:
        copy = copy_log(log, Location.of(folder).child(LOG))
        handle = DeltaTable(folder)
        handle.create_checkpoint()
        name = checkpoint_name(handle.version())
        actions = pq.read_table(pa.BufferReader(copy.read(name)))
        paths = pc.struct_field(actions["remove"], "path").to_pylist()
        listed = pa.array([path and unquote(path) for path in paths], pa.string())
        kept = actions.filter(pc.invert(pc.is_in(listed, pa.array(deleted, pa.string()))))
        content = pa.BufferOutputStream()
        pq.write_table(kept, content)
        if log.write_new(name, content.getvalue().to_pybytes()):
            hint = {"version": handle.version(), "size": kept.num_rows}
            log.write("_last_checkpoint", json.dumps(hint).encode())


def forget_versions(
    table: Table, keep: Collection[int], before: float, dry_run: bool = False
) -> list[str]:
    """Delete the log of versions that went out of use before a time, in seconds since 1970.

    The log then starts at a checkpoint, and each older version in ``keep`` has one of its own.
    Returns the names of the files, the oldest first.
    """
    log = table.location.child(LOG)
    with _named_faults(table):
        start = _start(log, before)
        return cut_log(table, keep, start, start, dry_run)


def cut_log(
    table: Table, keep: Collection[int], start: int, checkpoint: int, dry_run: bool = False
) -> list[str]:
    """Delete the log of the versions before ``start``, but for checkpoints of those in ``keep``.

    Later versions are read from ``checkpoint``, which is no older. Returns the names of the files,
    the oldest first.
    """
    log = table.location.child(LOG)
    kept = {version for version in keep if version < start}
    with _named_faults(table):
        gone = [
            name
            for name in log_names(log)
            if name[:20].isdigit()
            and (version := int(name[:20])) < start
            and not (version in kept and CHECKPOINT.fullmatch(name))
        ]
        if gone and not dry_run:
            _secure(table, kept, checkpoint)
            for name in gone:  # the oldest first: where a killed process stops, the log starts
                with suppress(FileNotFoundError):  # another vacuum was faster
                    log.files.delete_file(name)
    return gone


def copy_log(log: Location, copy: Location) -> Location:
    for name in log_names(log):
        if (content := log.read(name)) is not None:
            copy.write(name, content)
    return copy


def _start(log: Location, before: float) -> int:
    """The newest checkpoint whose predecessors all may go; 0 if there is none."""
    names = log_names(log)
    entries = versions_of(names, ENTRY)
    last = max(entries, default=0) - RECENT
    for version in sorted(versions_of(names, CHECKPOINT) & entries, reverse=True):
        (entry,) = log.files.get_file_info([entry_name(version)])
        if version <= last and entry.is_file and entry.mtime.timestamp() < before:
            return version
    return 0


def _secure(table: Table, kept: Collection[int], start: int) -> None:
    """Make the checkpoints that older versions leave readable, and sync them to the disk."""
    log = table.location.child(LOG)
    there = versions_of(log_names(log), CHECKPOINT)
    for version in kept:
        handle = table.open(version)
        if handle is not None and version not in there:
            handle.create_checkpoint()
    needed = {*kept, start}
    for version in needed:
        table.snapshot(version)
    if log.is_local:
        for name in log_names(log):
            if (found := CHECKPOINT.fullmatch(name)) and int(found[1]) in needed:
                sync(Path(log.uri, name))
        sync(Path(log.uri))


@contextmanager
def _named_faults(table: Table) -> Iterator[None]:
    try:
        yield
    except (DeltaError, OSError, pa.ArrowException) as error:
        what = f"cannot shorten the log of {table.location.uri}"
        raise StoreError(f"{what}: {reason(error)}") from error
