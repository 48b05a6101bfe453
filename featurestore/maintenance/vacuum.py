"""Delete the files of versions without a pin."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Any, Final

from featurestore.maintenance.inspect import all_tables
from featurestore.store import FeatureStore
from syntax.errors import SpecError

WEEK: Final = 168.0
"""Hours."""

_CENTURY: Final = 876_000


@dataclass(frozen=True)
class Vacuumed:
    """What was deleted of one table.

    Attributes:
        table: Path below the store.
        kept: Pinned versions, which stay readable beside the newest.
        files: Deleted files.
        size: Their bytes.
    """

    table: str
    kept: tuple[int, ...]
    files: int
    size: int

    def to_json(self) -> dict[str, Any]:
        """The attributes as plain JSON."""
        return asdict(self)


def vacuum_store(
    store: FeatureStore, older_than_hours: float = WEEK, dry_run: bool = False
) -> list[Vacuumed]:
    """Delete files that neither the newest version of a table nor a pinned one needs.

    Args:
        store: The store.
        older_than_hours: What went out of use less than so long ago stays: streams that read an
            older version, and commits under way, are at it. Longer than your longest run.
        dry_run: Only say what would be deleted.

    Raises:
        SpecError: A negative or infinite age.
    """
    if not 0 <= older_than_hours <= _CENTURY:
        raise SpecError(
            f"`older_than_hours={older_than_hours}` must not be negative, nor over {_CENTURY}"
        )
    pinned: dict[str, list[int]] = defaultdict(list)
    for pin in store.pins.all().values():
        pinned[f"datasets/{pin.table}"].append(pin.version)
    done = []
    for name, table in all_tables(store):
        keep = pinned[name]
        # The log lists replaced files for ever, even after they are deleted.
        paths = table.vacuum(keep, older_than_hours, dry_run=True)
        there = [info for info in table.location.files.get_file_info(paths) if info.is_file]
        if there and not dry_run:
            table.vacuum(keep, older_than_hours, dry_run=False)
        size = sum(info.size or 0 for info in there)
        done.append(Vacuumed(name, tuple(sorted(set(keep))), len(there), size))
    return done
