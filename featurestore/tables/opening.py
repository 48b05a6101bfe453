"""Versions of Delta tables, opened."""

from __future__ import annotations

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from featurestore.tables.attempts import reason
from featurestore.tables.files import FileGoneError
from featurestore.tables.location import Location
from featurestore.tables.log import LOG, checkpoint_name, entry_name
from syntax.errors import StoreError, UnknownDatasetError


def open_table(location: Location, version: int | None = None) -> DeltaTable | None:
    """A handle at a version (the newest by default); ``None`` if there is no table.

    Raises:
        UnknownDatasetError: The table has no such version.
        FileGoneError: A vacuum forgot the version.
        StoreError: The log cannot be read.
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
    except DeltaError:
        log = location.child(LOG)
        there = log.files.get_file_info([entry_name(version), checkpoint_name(version)])
        if any(info.is_file for info in there):
            raise
        raise FileGoneError(
            f"version {version} of {location.uri} was vacuumed: read a newer one, and pin those "
            "that you still need"
        ) from None
