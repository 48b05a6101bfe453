"""The top of a store: its location, its format, and the tables below it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from featurestore.location import Location
from featurestore.tables.delta import Table, TableLayout
from syntax.errors import StoreFormatError

FORMAT: Final = 1
"""Version of the store's layout; a release reads its own and older ones."""

MARKER: Final = "parsebank.json"
"""File that says which format a folder has; written before its first table."""


class StoreRoot:
    """A checked location whose marker is written when the first table is made.

    Args:
        uri: A local folder, or a URL such as ``s3://bucket/prefix``; it need not exist.
        options: Options of the object store.

    Raises:
        StoreFormatError: A newer release wrote the store, or the marker is not ours.
    """

    def __init__(self, uri: str | Path, options: Mapping[str, str] | None = None) -> None:
        self.location = Location.of(uri, options)
        self._marked = _is_marked(self.location)

    def table(self, layout: TableLayout, *names: str) -> Table:
        """A table in a folder below the root; it need not exist."""
        return Table(self.location.child(*names), layout, on_create=self._mark)

    def _mark(self) -> None:
        if not self._marked:
            content = json.dumps({"format": FORMAT, "what": "a parsebank feature store"})
            self.location.write(MARKER, content.encode())
            self._marked = True


def _is_marked(location: Location) -> bool:
    content = location.read(MARKER)
    if content is not None:
        _check_format(location, content)
    return content is not None


def _check_format(location: Location, content: bytes) -> None:
    try:
        version = json.loads(content)["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreFormatError(f"{location.uri}/{MARKER} is not ours: {error!r}") from error
    if not isinstance(version, int) or version > FORMAT:
        raise StoreFormatError(
            f"{location.uri} has format {version}; this release reads up to {FORMAT}: "
            "install a newer parsebank",
            format=version,
            newest=FORMAT,
        )
