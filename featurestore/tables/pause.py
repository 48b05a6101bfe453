"""Appends wait for a change that lost to other writers too often.

A change of rows starts over if anything was appended since it began: beside a steady writer a long
one would never end. It asks by a property of the table, which each append reads.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from deltalake import DeltaTable

from featurestore.tables.layout import PAUSE_PROPERTY

PATIENCE: Final = 3
"""Times that a change loses before it asks appends to wait."""

LONGEST: Final = 30.0
"""Seconds that appends wait for one change, at most: its process may be gone."""

_LOOK: Final = 0.1
"""Seconds between two looks at the table."""


class Pause:
    """What one change asks for."""

    def __init__(self) -> None:
        self._name = uuid.uuid4().hex

    @contextmanager
    def around(self, handle: DeltaTable, attempt: int) -> Iterator[None]:
        """Ask appends to wait while the handle is changed, if this is not one of the first tries.

        The table library refuses an append, too, that began before the properties changed.

        Raises:
            CommitFailedError: Another writer came first. The pause stands, for the next try.
        """
        if attempt < PATIENCE:
            yield
            return
        _ask(handle, self._name)
        yield
        _ask(handle, "")


def _ask(handle: DeltaTable, name: str) -> None:
    handle.alter.set_table_properties({PAUSE_PROPERTY: name}, raise_if_not_exists=False)


class Pauses:
    """What the appends of one process wait for. Safe for threads."""

    def __init__(self) -> None:
        self._over = ""

    def wait(self, look: Callable[[], DeltaTable | None]) -> DeltaTable | None:
        """The newest handle, once no change asks for a pause; each is granted `LONGEST`, once."""
        handle = look()
        name = _asked(handle)
        if name and name != self._over:
            until = time.monotonic() + LONGEST
            while _asked(handle) == name and time.monotonic() < until:
                time.sleep(_LOOK)
                handle = look()
            self._over = name
        return handle


def _asked(handle: DeltaTable | None) -> str:
    return "" if handle is None else handle.metadata().configuration.get(PAUSE_PROPERTY, "")
