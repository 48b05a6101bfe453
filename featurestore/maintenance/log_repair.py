"""Damage to the log of a table: entries that are empty, cut or missing, and torn checkpoints.

A file system that loses power may keep a file's name and lose its content. The newest version of a
table is its newest checkpoint and all entries after it; an entry lists data files that it adds and
removes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq

from featurestore.tables.location import Location
from featurestore.tables.log import (
    CHECKPOINT,
    ENTRY,
    LOG,
    entry_name,
    paths_of,
    read_actions,
)
from syntax.strict_json import parse_json

DAMAGED: Final = "_damaged"
"""Folder of a table that keeps what a repair took away; no reader and no vacuum looks there."""

_HINT: Final = "_last_checkpoint"
_PATHS: Final = ["add.path", "remove.path"]

_NO_CHANGE: Final = "REPAIR"
_TAKEN_OUT: Final = "FSCK"
"""What the table library calls an entry that removes files that are not there."""

_CLOCKS: Final = 3600.0
"""Seconds by which the clocks of a writer and of its disk may differ."""

Action = Literal["replace", "remove", "none", "restore"]


@dataclass(frozen=True)
class LogFault:
    """A damaged file of a log.

    Attributes:
        table: Path of the table below the store.
        file: The entry or checkpoint.
        message: What is wrong.
        action: What a repair does: ``replace`` the entry with one without changes, ``remove`` the
            checkpoint, since entries say the same, or ``none``, where only versions before a
            checkpoint need it. ``restore`` is left to people: nothing says what was in it.
    """

    table: str
    file: str
    message: str
    action: Action


def table_locations(root: Location, *path: str) -> Iterator[tuple[str, Location]]:
    """Every table below a folder, found by its log, with its path."""
    here = root.child(*path) if path else root
    folders = here.folders()
    if LOG in folders:
        yield "/".join(path), here
        return
    for name in folders:
        if not name.startswith(("_", ".")):
            yield from table_locations(root, *path, name)


def log_faults(name: str, table: Location) -> list[LogFault]:
    """The damaged and missing files of a table's log.

    Args:
        name: Path of the table below the store.
        table: Its location.

    Raises:
        StoreError: A file cannot be read now, which says nothing about its content.
    """
    log = table.child(LOG)
    names = _names(log)
    entries = {int(found[1]) for one in names if (found := ENTRY.fullmatch(one))}
    torn, whole = _checkpoints(log, names)
    newest = max(whole, default=-1)
    faults = [LogFault(name, one, "the checkpoint is no Parquet file", "remove") for one in torn]
    if _HINT in names and _hinted(log) not in whole:
        message = "it names a checkpoint that cannot be read"
        faults.append(LogFault(name, _HINT, message, "remove"))
    first = min(entries, default=0)
    # What a vacuum took away is no damage: versions from the first entry on are readable.
    start = first if first <= newest else 0
    for number in range(start, max(entries, default=-1) + 1):
        damage = _damage(log, number) if number in entries else "the entry is missing"
        action: Action = "replace" if number else "restore"  # version 0 says what the table is
        if damage and number in whole:
            damage, action = f"{damage}; its checkpoint says the same", "replace"
        elif damage and number <= newest:
            damage, action = f"{damage}; versions before {newest} cannot all be read", "none"
        if damage:
            faults.append(LogFault(name, entry_name(number), damage, action))
    return faults


def mend(table: Location, fault: LogFault) -> None:
    """Take a damaged file out of the log; in the place of an entry comes one without changes.

    What was there of it goes to the folder `DAMAGED`. The rows of the commit are gone from the
    table until `featurestore.maintenance.recovery` appends them again.
    """
    log = table.child(LOG)
    content = log.read(fault.file)
    if content is not None:
        table.child(DAMAGED).write(fault.file, content)
    if ENTRY.fullmatch(fault.file):
        nothing = {"timestamp": int(time.time() * 1000), "operation": _NO_CHANGE}
        log.write(fault.file, json.dumps({"commitInfo": nothing}).encode() + b"\n")
    else:
        log.files.delete_file(fault.file)


@dataclass(frozen=True)
class LogHistory:
    """What the whole entries and checkpoints of a log say.

    Attributes:
        added, removed: The data files that they add and remove, each with the first version that
            says so. Files that an earlier repair took out do not count as removed.
        start: The first version with an entry.
        vacuumed: The last version that belongs to a vacuum; -1 if none does.
    """

    added: Mapping[str, int]
    removed: Mapping[str, int]
    start: int
    vacuumed: int


def read_history(table: Location) -> LogHistory:
    """What the log of a table says, once its damaged entries are mended."""
    log = table.child(LOG)
    added: dict[str, int] = {}
    removed: dict[str, int] = {}
    taken_out: set[str] = set()
    operations: dict[int, str] = {}
    for name in _names(log):
        content = log.read(name) or b""
        if ENTRY.fullmatch(name):
            actions = read_actions(content)
            operation = operations[int(name[:20])] = _about(actions).get("operation", "")
            if operation == _TAKEN_OUT:
                taken_out.update(paths_of(actions, "remove"))
        elif CHECKPOINT.fullmatch(name):  # a vacuum may have removed the entries before it
            actions = pq.read_table(pa.BufferReader(content), columns=_PATHS).to_pylist()
        else:
            continue
        for kind, versions in (("add", added), ("remove", removed)):
            for path in paths_of(actions, kind):
                versions.setdefault(path, int(name[:20]))
    for path in taken_out:
        removed.pop(path, None)
    vacuums = (number for number, what in operations.items() if what.startswith("VACUUM"))
    return LogHistory(added, removed, min(operations, default=0), max(vacuums, default=-1))


def data_files(table: Location) -> dict[str, float]:
    """The data files of any version that are there, with the time of their last change."""
    found = table.files.get_file_info(pa_fs.FileSelector("", recursive=True))
    files = (info for info in found if info.is_file and info.path.endswith(".parquet"))
    return {info.path: info.mtime.timestamp() for info in files if not info.path.startswith("_")}


def written_at(table: Location, number: int) -> float | None:
    """When an entry was written, by the clock of its disk; ``None`` if that is of a later copy.

    Args:
        table: Location of the table.
        number: Version of the entry.
    """
    log, name = table.child(LOG), entry_name(number)
    (info,) = log.files.get_file_info([name])
    written: float = info.mtime.timestamp()
    said = _about(read_actions(log.read(name) or b"")).get("timestamp") or 1000 * written
    return written if abs(written - said / 1000) < _CLOCKS else None


def _about(actions: list[dict[str, Any]]) -> dict[str, Any]:
    """What an entry says about its commit; empty if it says nothing."""
    return next((one["commitInfo"] for one in actions if "commitInfo" in one), {})


def _names(log: Location) -> list[str]:
    found = log.files.get_file_info(pa_fs.FileSelector("", allow_not_found=True))
    return sorted(info.base_name for info in found if info.is_file)


def _checkpoints(log: Location, names: list[str]) -> tuple[list[str], list[int]]:
    """Names of the torn ones, and versions of those that are whole."""
    torn, whole = [], []
    for name in names:
        if found := CHECKPOINT.fullmatch(name):
            try:
                pq.ParquetFile(pa.BufferReader(log.read(name) or b"")).read()
                whole.append(int(found[1]))
            except (OSError, pa.ArrowException):
                torn.append(name)
    return torn, whole


def _hinted(log: Location) -> int | None:
    try:
        return int(parse_json(log.read(_HINT) or b"")["version"])
    except (ValueError, KeyError, TypeError):
        return None


def _damage(log: Location, number: int) -> str | None:
    content = log.read(entry_name(number)) or b""
    if not content.strip(b"\0\n "):
        return "the entry is empty"
    lines = content.strip().splitlines()
    read = read_actions(content)
    if len(read) == len(lines):
        return None
    what = _about(read).get("operation")
    known = f", and was a {what}" if what else ""
    return f"the entry is cut or damaged in line {len(read) + 1}{known}"
