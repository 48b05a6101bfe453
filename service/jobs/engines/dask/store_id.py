"""The id of a store: a small file by which machines check that they see the same store."""

from __future__ import annotations

import secrets
from typing import Final

from featurestore.tables.location import Location

_NAME: Final = "beacon"


def ensure_store_id(store: str) -> str:
    """The id of a store; a new one is written if it has none.

    Raises:
        StoreError: The store can be neither read nor written.
    """
    found = read_store_id(store)
    if found is None:
        Location.of(store).write(_NAME, secrets.token_hex(16).encode())
        found = read_store_id(store)  # if two processes write one, the later write wins for both
        assert found is not None
    return found


def read_store_id(store: str) -> str | None:
    """The id of a store; ``None`` if it has none.

    Raises:
        StoreError: The store cannot be read.
    """
    content = Location.of(store).read(_NAME)
    return None if content is None else content.decode()
