"""The top of a store: its location, its format, and the tables below it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from featurestore.tables.delta import Table
from featurestore.tables.file_cache import FileCache
from featurestore.tables.layout import TableLayout
from featurestore.tables.location import Location
from syntax.errors import StoreFormatError
from syntax.strict_json import parse_json

FORMAT: Final = 3

MARKER: Final = "parsebank.json"
"""File with the format of a folder; written before its first table."""


class StoreRoot:
    """A checked location whose marker is written before its first table; it need not exist."""

    def __init__(
        self,
        uri: str | Path,
        options: Mapping[str, str] | None = None,
        copies: FileCache | None = None,
    ) -> None:
        self.location = Location.of(uri, options, copies)
        self._made = copies
        self._format = read_format(self.location)

    def table(self, layout: TableLayout, *names: str) -> Table:
        return Table(
            self.location.child(*names),
            layout,
            on_create=self._mark_new,
            made=self._made,
        )

    def _mark_new(self) -> None:
        if self._format is None:
            content = json.dumps({"format": FORMAT, "what": "a parsebank feature store"})
            self.location.write(MARKER, content.encode())
            self._format = FORMAT


def read_format(location: Location) -> int | None:
    """Format of the store at a location; ``None`` if there is none."""
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
    if version != FORMAT:
        raise StoreFormatError(
            f"{location.uri} has format {version}; this release reads {FORMAT}: use the release "
            "that wrote the store, or write it again",
            format=version,
            newest=FORMAT,
        )
    return FORMAT
