"""Versions of Delta tables, opened."""

from __future__ import annotations

import pyarrow.fs as pa_fs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from featurestore.tables.attempts import reason
from featurestore.tables.files import FileGoneError
from featurestore.tables.location import Location
from featurestore.tables.log import CHECKPOINT, ENTRY, LOG
from syntax.errors import StoreError, UnknownDatasetError


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
    found = log.files.get_file_info(pa_fs.FileSelector("", allow_not_found=True))
    names = [info.base_name for info in found if info.is_file]
    entries = [int(match[1]) for name in names if (match := ENTRY.fullmatch(name))]
    checkpoints = [int(match[1]) for name in names if (match := CHECKPOINT.fullmatch(name))]
    start = max((one for one in checkpoints if one <= version), default=-1)
    return start < version and start + 1 < min(entries, default=0)
