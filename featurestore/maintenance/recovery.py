"""Rows of damaged log entries come back; rows whose deletion is whole in the log do not.

The data files of a damaged append are there, and no other entry mentions them. But so are those of
commits that failed: a join that lost its race leaves a copy of rows that lie elsewhere, and that
may have been deleted since. Times cannot tell the two apart, since both may be written between the
same entries. Rows can: a copy was made of files that the log mentions, and a deletion leaves these
on the disk until a vacuum.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import pyarrow as pa

from featurestore.maintenance.log_repair import LogHistory, data_files, written_at
from featurestore.maintenance.table_rows import Identity, TableRows
from featurestore.tables.delta import Table
from featurestore.tables.files import UnreadableFileError

_DELETED_BY: Final = ("key", "example_key")
"""Columns by whose values rows are deleted; a table has one of them, or loses no rows."""


def recover_rows(name: str, table: Table, history: LogHistory) -> tuple[int, int]:
    """Append the rows of damaged entries, and delete those again that a damaged entry had joined.

    A row of a file that the log does not mention is appended if no file that the log mentions has
    it, neither one in use nor a replaced one. Where replaced files are gone, the file must also be
    younger than the last vacuum, which deletes older ones of its kind.

    Args:
        name: Path of the table below the store.
        table: The table, without its unreadable files.
        history: What its log said once it was mended.

    Returns:
        Number of rows that were appended, and of those that are in unmentioned or joined files and
        stay out of the table: a deletion took them, or may have.
    """
    rows, there = TableRows(name, table), data_files(table.location)
    active = {file.path: history.added.get(file.path, -1) for file in table.snapshot().files}
    versions = _versions(rows, active)
    left_out = _delete_again(table, rows, history, versions)
    held = versions.keys() - left_out
    replaced, unreadable = _identities(rows, history.removed.keys() & there.keys())
    since = _known_since(table, history, history.removed.keys() - there.keys() | unreadable)
    mentioned = active.keys() | history.added.keys() | history.removed.keys()
    appended = 0
    for path in sorted(there.keys() - mentioned):
        found = rows.readable(path)
        names = rows.identities_of(found)
        lost = [one not in held and one not in replaced and there[path] > since for one in names]
        if any(lost):
            table.append(found.filter(pa.array(lost)))
            held.update(one for one, is_lost in zip(names, lost, strict=True) if is_lost)
            appended += sum(lost)
        left_out.update(names)
    return appended, len(left_out - held)


def _versions(rows: TableRows, active: Mapping[str, int]) -> dict[Identity, int]:
    """For each row, the last version that added a file with it.

    Args:
        rows: Reader of the table.
        active: Files, and the versions that added them.
    """
    versions: dict[Identity, int] = {}
    for path, version in sorted(active.items(), key=lambda item: item[1]):
        versions.update(dict.fromkeys(rows.identities(path), version))
    return versions


def _delete_again(
    table: Table, rows: TableRows, history: LogHistory, versions: Mapping[Identity, int]
) -> set[Identity]:
    """Delete rows that a damaged entry had joined, and a whole one deleted.

    Without the damaged entry, the files that it joined are in use again. The log mentions the file
    that it made only where a later entry replaces it: rows of it that this one kept are in files
    that are no older than this entry.
    """
    column = next((name for name in _DELETED_BY if name in rows.identity), None)
    if column is None:
        return set()
    deleted: set[Identity] = set()
    place = rows.identity.index(column)
    for path in history.removed.keys() - history.added.keys():
        own, end = _identities(rows, [path])[0], history.removed[path]
        # Rows without a key, such as of some drops, are not deleted.
        deleted.update(one for one in own if one[place] and versions.get(one, end) < end)
    if deleted:
        table.delete(column, sorted({str(one[place]) for one in deleted}))
    return deleted


def _known_since(table: Table, history: LogHistory, gone: Collection[str]) -> float:
    """The time since which log and files show every deletion; infinite if there is none.

    Args:
        table: The table.
        history: What its log says.
        gone: The replaced files that cannot be read.
    """
    if not gone and history.start == 0:
        return -math.inf
    if any(history.removed[path] > history.vacuumed for path in gone):
        return math.inf  # something else than a vacuum took them
    written = written_at(table.location, max(history.vacuumed, history.start))
    return math.inf if written is None else written


def _identities(rows: TableRows, paths: Iterable[str]) -> tuple[set[Identity], set[str]]:
    """What tells the rows of files apart, and the files that cannot be read."""
    found: set[Identity] = set()
    unreadable = set()
    for path in paths:
        try:
            found.update(rows.identities(path))
        except UnreadableFileError:
            unreadable.add(path)
    return found, unreadable
