"""A small file in a store, by which machines tell that they see the same one."""

from __future__ import annotations

import secrets
from typing import Final

from featurestore.tables.location import Location

_NAME: Final = "beacon"


def light_beacon(store: str) -> str:
    """The id of a store, which is given one if it has none.

    Raises:
        StoreError: The store can be neither read nor written.
    """
    found = read_beacon(store)
    if found is None:
        Location.of(store).write(_NAME, secrets.token_hex(16).encode())
        found = read_beacon(store)  # of two that give it one, the later counts for both
        assert found is not None
    return found


def read_beacon(store: str) -> str | None:
    """The id of a store, ``None`` when nothing is there.

    Raises:
        StoreError: It is there and cannot be read.
    """
    content = Location.of(store).read(_NAME)
    return None if content is None else content.decode()
