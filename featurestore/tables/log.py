"""The log of a Delta table: its entries, and the wait until the disk holds them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from featurestore.tables.location import Location
from syntax.errors import StoreError
from syntax.files import sync
from syntax.strict_json import parse_json

LOG: Final = "_delta_log"

ENTRY: Final = re.compile(r"(\d{20})\.json")

CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint(\..*)?\.parquet")
"""Name of a checkpoint, or of a part of one; the first group is its version."""


def entry_name(version: int) -> str:
    return f"{version:020d}.json"


def checkpoint_name(version: int) -> str:
    return f"{version:020d}.checkpoint.parquet"


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
