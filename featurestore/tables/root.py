"""The top of a store: its location, its format, and the tables below it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from deltalake import DeltaTable

from featurestore.tables.delta import Table
from featurestore.tables.file_cache import FileCache
from featurestore.tables.layout import FORMAT_PROPERTY, TableLayout
from featurestore.tables.location import Location
from syntax.errors import StoreFormatError
from syntax.strict_json import parse_json

FORMAT: Final = 2
"""Version of the store's layout; a release reads its own and older ones.

1: parses as columns. 2: each parse also packed in one column; examples with the tokens that their
dataset brought.
"""

MARKER: Final = "parsebank.json"
"""File with the format of a folder; written before its first table."""


class StoreRoot:
    """A checked location whose marker is written before its first table.

    Args:
        uri: A local folder, or a URL such as ``s3://bucket/prefix``; it need not exist.
        options: Options of the object store.
        copies: Copies of remote files on this machine, and what is made from tables, if there are
            to be any.

    Raises:
        StoreFormatError: A newer release wrote the store, or the marker is not ours.
    """

    def __init__(
        self,
        uri: str | Path,
        options: Mapping[str, str] | None = None,
        copies: FileCache | None = None,
    ) -> None:
        self.location = Location.of(uri, options, copies)
        self._made = copies
        self._format = read_format(self.location)

    @property
    def format(self) -> int:
        """Format of the store as it is now; `FORMAT` if there is none yet."""
        if self._format != FORMAT:
            self._format = read_format(self.location)
        return FORMAT if self._format is None else self._format

    def table(self, layout: TableLayout, *names: str) -> Table:
        """A table in a folder below the root; it need not exist."""
        return Table(
            self.location.child(*names),
            layout,
            on_create=self._mark_new,
            before_write=lambda: self._admit(layout.format),
            made=self._made,
        )

    def mark(self) -> None:
        """Write that the store has this release's format.

        Raises:
            StoreError: The folder cannot be written.
        """
        content = json.dumps({"format": FORMAT, "what": "a parsebank feature store"})
        self.location.write(MARKER, content.encode())
        self._format = FORMAT

    def _mark_new(self) -> None:
        if self._format is None:
            self.mark()

    def _admit(self, needed: int) -> None:
        """Refuse to write a table whose columns an older store lacks."""
        if self._format not in (FORMAT, None) and self.format < needed:
            raise StoreFormatError(
                f"{self.location.uri} has format {self._format} and can only be read; this release "
                f"writes {FORMAT}: run `parsebank store migrate --store {self.location.uri}`",
                format=self._format,
                newest=FORMAT,
            )


def read_format(location: Location) -> int | None:
    """Format of the store at a location; ``None`` if there is none.

    Raises:
        StoreFormatError: A newer release wrote it, or the marker is not ours.
        StoreError: The marker cannot be read.
    """
    if location.is_local and Path(location.uri).is_file():
        raise StoreFormatError(f"{location.uri} is a file; a store is a folder, so name another")
    content = location.read(MARKER)
    if content is None:
        return None
    try:
        version = parse_json(content)["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreFormatError(
            f"{location.uri}/{MARKER} is damaged, or another program's: it is not JSON with a "
            f'format; if the folder is a store, write {{"format": {FORMAT}}} into it'
        ) from error
    if not isinstance(version, int) or version > FORMAT:
        raise StoreFormatError(
            f"{location.uri} has format {version}; this release reads up to {FORMAT}: "
            "install a newer parsebank",
            format=version,
            newest=FORMAT,
        )
    return version


def format_of(handle: DeltaTable) -> int:
    """Format of a table: of the columns that it is sure to have.

    Raises:
        StoreFormatError: A newer release wrote it.
    """
    found = int(handle.metadata().configuration.get(FORMAT_PROPERTY, "1"))
    if found > FORMAT:
        raise StoreFormatError(
            f"{handle.table_uri} has format {found}; this release knows up to {FORMAT}: install a "
            "newer parsebank",
            format=found,
            newest=FORMAT,
        )
    return found
