"""Damage to the log of a table: entries that are empty, cut or missing, and torn checkpoints.

A file system that loses power may keep a file's name and lose its content. The newest version of a
table is its newest checkpoint and all entries after it; an entry lists data files that it adds and
removes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

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
    table until `unmentioned_files` are appended again.
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


def unmentioned_files(table: Location) -> list[str]:
    """Data files that nothing in the log mentions: of damaged entries, and of failed commits."""
    log = table.child(LOG)
    mentioned: set[str] = set()
    for name in _names(log):
        if ENTRY.fullmatch(name):
            mentioned.update(paths_of(read_actions(log.read(name) or b""), "add", "remove"))
        elif CHECKPOINT.fullmatch(name):  # a vacuum may have removed the entries before it
            actions = pq.read_table(pa.BufferReader(log.read(name) or b""), columns=_PATHS)
            mentioned.update(paths_of(actions.to_pylist(), "add", "remove"))
    found = table.files.get_file_info(pa_fs.FileSelector("", recursive=True))
    paths = (info.path for info in found if info.is_file and info.path.endswith(".parquet"))
    return sorted(p for p in paths if not p.startswith("_") and p not in mentioned)


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
    what = next((one["commitInfo"].get("operation") for one in read if "commitInfo" in one), None)
    known = f", and was a {what}" if what else ""
    return f"the entry is cut or damaged in line {len(read) + 1}{known}"
