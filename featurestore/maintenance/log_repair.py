"""Damage to the log of a table: entries that are empty, cut or missing, and wrong checkpoints.

A file system that loses power may keep a file's name and lose its content.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pa_fs
import pyarrow.parquet as pq

from featurestore.tables.location import Location
from featurestore.tables.log import (
    CHECKPOINT,
    ENTRY,
    LOG,
    entry_name,
    log_names,
    paths_of,
    read_actions,
    versions_of,
)
from syntax.strict_json import parse_json

_HINT: Final = "_last_checkpoint"

Action = Literal["replace", "remove", "forget", "restore"]


@dataclass(frozen=True)
class LogFault:
    """A damaged file of a log.

    Attributes:
        action: ``replace`` the entry with one without changes, ``remove`` the checkpoint, since
            entries say the same, or ``forget`` the versions before a later checkpoint, which alone
            need the entry. ``restore`` is left to people: nothing says what was in it.
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
    """The damaged and missing files of a table's log."""
    log = table.child(LOG)
    names = log_names(log)
    entries = versions_of(names, ENTRY)
    damaged = {number: what for number in entries if (what := _damage(log, number))}
    last = max(entries, default=-1)
    faults, whole = list[LogFault](), list[int]()
    for one in names:
        if found := CHECKPOINT.fullmatch(one):
            if what := _checkpoint_fault(log, one, whole, entries - damaged.keys()):
                faults.append(LogFault(name, one, what, "remove"))
            else:
                whole.append(int(found[1]))
    newest = max(whole, default=-1)
    if _HINT in names and _hinted(log) not in whole:
        message = "it names a checkpoint that cannot be read"
        faults.append(LogFault(name, _HINT, message, "remove"))
    first = min(entries, default=0)
    # What a vacuum took away is no damage: versions from the first entry on are readable.
    start = first if first <= newest else 0
    missing = set(range(start, last + 1)) - entries
    for number in sorted(missing | damaged.keys()):
        message = damaged.get(number, "the entry is missing")
        action: Action = "replace" if number else "restore"  # version 0 says what the table is
        if number in whole:
            message, action = f"{message}; its checkpoint says the same", "replace"
        elif number < newest:
            message, action = f"{message}; versions before {newest} cannot all be read", "forget"
        faults.append(LogFault(name, entry_name(number), message, action))
    return faults


def mend(log: Location, fault: LogFault) -> None:
    """Put an entry without changes in the place of a damaged one, or remove a checkpoint."""
    if ENTRY.fullmatch(fault.file):
        nothing = {"timestamp": int(time.time() * 1000), "operation": "REPAIR"}
        log.write(fault.file, json.dumps({"commitInfo": nothing}).encode() + b"\n")
    else:
        log.files.delete_file(fault.file)


@dataclass(frozen=True)
class LostRewrite:
    """A change that replaced files of an entry that is lost.

    Attributes:
        removed: The files that it replaced, which no entry adds.
        older: Files that earlier entries add: what the lost one replaced is in use again.
    """

    removed: list[str]
    older: frozenset[str]


def lost_rewrites(log: Location) -> Iterator[LostRewrite]:
    """The changes of a log without damaged entries that replaced files of lost ones.

    Where a log starts at a checkpoint, the change of that version replaced files of entries that
    are gone for good; only what follows a known version is looked at.
    """
    known: set[str] = set()
    last = -1  # the newest version all of whose files are known
    for name in sorted(log_names(log), key=lambda name: (name[:20], not ENTRY.fullmatch(name))):
        if CHECKPOINT.fullmatch(name):
            known |= _listed(log, name, "add")
            last = int(name[:20])
        elif ENTRY.fullmatch(name):
            actions = read_actions(log.read(name) or b"")
            added, removed = paths_of(actions, "add"), paths_of(actions, "remove")
            if int(name[:20]) == last + 1:
                last += 1
                if lost := [path for path in removed if path not in known]:
                    yield LostRewrite(lost, frozenset(known))
            known.update(added)


def unlisted_files(table: Location, log: Location) -> list[str]:
    """Data files that no version has: of commits that failed, or whose entry was lost."""
    listed: set[str] = set()
    for name in log_names(log):
        if ENTRY.fullmatch(name):
            listed.update(paths_of(read_actions(log.read(name) or b""), "add", "remove"))
        elif CHECKPOINT.fullmatch(name):
            with suppress(OSError, pa.ArrowException):  # it is a fault of its own
                listed.update(*(_listed(log, name, kind) for kind in ("add", "remove")))
    found = table.files.get_file_info(pa_fs.FileSelector("", recursive=True))
    paths = (info.path for info in found if info.is_file and info.path.endswith(".parquet"))
    return sorted(path for path in paths if not path.startswith("_") and path not in listed)


def _checkpoint_fault(
    log: Location, name: str, earlier: list[int], entries: Collection[int]
) -> str | None:
    """The fault of a checkpoint, by the entries since an earlier one, if they are there."""
    version = int(name[:20])
    try:
        there = _listed(log, name, "add")
    except (OSError, pa.ArrowException):
        return "the checkpoint cannot be read"
    start = max(earlier, default=-1)
    if "checkpoint.parquet" not in name or not {*range(start + 1, version + 1)} <= {*entries}:
        return None
    active: set[str] = set()
    if start >= 0:
        active = _listed(log, f"{start:020d}.checkpoint.parquet", "add")
    for number in range(start + 1, version + 1):
        actions = read_actions(log.read(entry_name(number)) or b"")
        active = active.difference(paths_of(actions, "remove")).union(paths_of(actions, "add"))
    return None if active == there else "the checkpoint lists other files than the entries"


def _listed(log: Location, name: str, kind: str) -> set[str]:
    content = pa.BufferReader(log.read(name) or b"")
    actions = pq.ParquetFile(content).read(columns=[f"{kind}.path"])
    if kind not in actions.column_names:  # none
        return set()
    return {unquote(path) for path in pc.struct_field(actions[kind], "path").to_pylist() if path}


def _hinted(log: Location) -> int | None:
    try:
        return int(parse_json(log.read(_HINT) or b"")["version"])
    except (ValueError, KeyError, TypeError):
        return None


def _damage(log: Location, number: int) -> str | None:
    content = log.read(entry_name(number)) or b""
    if not content.strip(b"\0\n "):
        return "the entry is empty"
    read = read_actions(content)
    if len(read) == len(content.strip().splitlines()):
        return None
    what = next((one["commitInfo"].get("operation") for one in read if "commitInfo" in one), None)
    known = f", and was a {what}" if what else ""
    return f"the entry is cut or damaged in line {len(read) + 1}{known}"
