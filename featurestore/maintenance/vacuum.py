"""Deletion of the files and the log of versions without a pin."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, Final

from featurestore.maintenance.forget import forget_files, forget_versions
from featurestore.maintenance.inspect import all_tables
from featurestore.store import FeatureStore
from syntax.errors import SpecError

WEEK: Final = 168.0
"""Hours."""

_CENTURY: Final = 876_000


@dataclass(frozen=True)
class Vacuumed:
    """Deletions from one table, beside whose newest version the versions ``kept`` stay readable."""

    table: str
    kept: tuple[int, ...]
    files: int
    size: int
    log_files: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def vacuum_store(
    store: FeatureStore, older_than_hours: float = WEEK, dry_run: bool = False
) -> list[Vacuumed]:
    """Delete files that neither the newest version of a table nor a pinned one needs.

    The log forgets the deleted files, and versions that went out of use that long ago, except
    pinned ones and the newest hundred. More recent files stay, since readers of an older
    version, and commits under way, are at them; streams have their own lease after ten minutes.
    Less than an hour, which the command refuses, spares what no version has ever had, so that no
    commit loses its rows; readers may lose files that they are about to read.

    Raises:
        FileGoneError: A pinned version lacks files, or entries of the log.
    """
    if not 0 <= older_than_hours <= _CENTURY:
        raise SpecError(
            f"`older_than_hours={older_than_hours}` must not be negative, nor over {_CENTURY}"
        )
    before = time.time() - 3600 * older_than_hours
    done = []
    for name, table in all_tables(store):
        keep = _pinned(store, name)
        # The log lists deleted files until it forgets them.
        paths = table.vacuum(keep, older_than_hours, dry_run=True)
        there = [info for info in table.location.files.get_file_info(paths) if info.is_file]
        if there and not dry_run:
            table.vacuum(keep, older_than_hours, dry_run=False)
        if not dry_run:
            forget_files(table, paths)
        # Pins may have come since; what one of them has lost is said now rather than next time.
        keep = _pinned(store, name)
        entries = forget_versions(table, keep, before, dry_run)
        size = sum(info.size or 0 for info in there)
        done.append(Vacuumed(name, tuple(keep), len(there), size, len(entries)))
    return done


def _pinned(store: FeatureStore, name: str) -> list[int]:
    return sorted(store.pins.versions(name.removeprefix("datasets/"), "vacuum again"))
