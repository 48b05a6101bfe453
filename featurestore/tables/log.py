"""The log of a Delta table: its files, its versions, and the wait until the disk holds an entry."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow.fs as pa_fs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from featurestore.tables.files import FileGoneError
from featurestore.tables.location import Location
from syntax.errors import StoreError, UnknownDatasetError
from syntax.files import sync
from syntax.strict_json import parse_json

LOG: Final = "_delta_log"

ENTRY: Final = re.compile(r"(\d{20})\.json")

CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint(\..*)?\.parquet")
"""Name of a checkpoint, or of a part of one; the first group is its version."""

_BACKTRACE: Final = re.compile(r"^\s*0: ", re.MULTILINE)
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


def reason(error: Exception) -> str:
    """The message of the table library, on one line, without colours and without its backtrace."""
    message, *_ = _BACKTRACE.split(_COLOURS.sub("", str(error)))
    return " ".join(message.replace("↳", "").split())


def entry_name(version: int) -> str:
    return f"{version:020d}.json"


def checkpoint_name(version: int) -> str:
    return f"{version:020d}.checkpoint.parquet"


def log_names(log: Location) -> list[str]:
    """The files of a log, those of older versions first."""
    found = log.files.get_file_info(pa_fs.FileSelector("", allow_not_found=True))
    return sorted(info.base_name for info in found if info.is_file)


def versions_of(names: Iterable[str], kind: re.Pattern[str]) -> set[int]:
    """The versions that have an `ENTRY` or a `CHECKPOINT` among the files of a log."""
    return {int(found[1]) for name in names if (found := kind.fullmatch(name))}


def open_table(location: Location, version: int | None = None) -> DeltaTable | None:
    """A handle at a version (the newest by default); ``None`` if there is no table.

    Raises:
        FileGoneError: A vacuum forgot the version.
    """
    try:
        newest = DeltaTable(location.uri, storage_options=dict(location.options))
        if version is None or version == newest.version():
            return newest
        last = newest.version()
        if not 0 <= version <= last:
            raise UnknownDatasetError(
                f"{location.uri} has no version {version}; it has 0 to {last}",
                version=version,
                newest=last,
            )
        return _open_older(location, version)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise StoreError(f"cannot read {location.uri}: {reason(error)}") from error


def _open_older(location: Location, version: int) -> DeltaTable:
    try:
        return DeltaTable(location.uri, version=version, storage_options=dict(location.options))
    except (DeltaError, OSError):
        if not _was_forgotten(location.child(LOG), version):
            raise
        raise FileGoneError(
            f"version {version} of {location.uri} was vacuumed: read a newer one, and pin those "
            "that you still need"
        ) from None


def _was_forgotten(log: Location, version: int) -> bool:
    """``True`` if a vacuum took entries that a version is read from, though perhaps not its own.

    A version is read from its checkpoint, or the last one before it and the entries in between. A
    vacuum deletes from the oldest on, and may have been killed.
    """
    names = log_names(log)
    checkpoints = versions_of(names, CHECKPOINT)
    start = max((one for one in checkpoints if one <= version), default=-1)
    return start < version and start + 1 < min(versions_of(names, ENTRY), default=0)


def read_actions(content: bytes) -> list[dict[str, Any]]:
    """The actions of an entry, one in each line, up to the first that cannot be read."""
    actions = []
    for line in content.strip().splitlines():
        try:
            action = parse_json(line)
        except ValueError:
            break
        if not isinstance(action, dict):
            break
        actions.append(action)
    return actions


def paths_of(actions: list[dict[str, Any]], *kinds: str) -> list[str]:
    """The data files that actions of some kinds (``add``, ``remove``) name."""
    return [unquote(one[kind]["path"]) for one in actions for kind in kinds if one.get(kind)]


def sync_commits(location: Location, first: int, last: int) -> None:
    """Wait until the disk holds commits, so that they survive a power failure.

    The table library renames an entry into place without waiting for its content: after a power
    failure it may be empty. An object store has nothing to wait for.
    """
    if location.is_local:
        try:
            _sync_commits(Path(location.uri), first, last)
        except OSError as error:
            raise StoreError(f"cannot sync {location.uri}: {error}") from error


def _sync_commits(table: Path, first: int, last: int) -> None:
    folders = {table / LOG}
    for version in range(first, last + 1):
        entry = table / LOG / entry_name(version)
        gone = set()
        for path in paths_of(read_actions(entry.read_bytes()), "add"):
            try:
                sync(table / path)
            except FileNotFoundError:
                gone.add(path)
            folders.add((table / path).parent)
        # Earlier versions are other writers'. Another process may have replaced and vacuumed ours.
        if version == last and (lost := gone - _removed_after(table, version)):
            raise StoreError(
                f"{', '.join(sorted(lost))} of version {version} of {table} was deleted before the "
                "commit was done, so its rows are lost: do not run Delta's own vacuum, nor a "
                "vacuum of less than the hours that a commit takes; `parsebank store repair` takes "
                "the file out of the table"
            )
        sync(entry)
    for folder in folders:
        sync(folder)


def _removed_after(table: Path, version: int) -> set[str]:
    removed: set[str] = set()
    while (entry := table / LOG / entry_name(version := version + 1)).exists():
        removed.update(paths_of(read_actions(entry.read_bytes()), "remove"))
    return removed
