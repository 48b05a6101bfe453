"""Which text a worker had in hand when it died, so that one text cannot cost a whole shard.

Before each text its key is written to a small file of this try; the operating system keeps it
whatever becomes of the process. A text on which two tries ended is given up.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

DEATHS = 2
"""Workers that must have ended on a text before it is blamed: one may be killed by chance."""

_KEY_BYTES = 32
_NOTHING = b"-" * _KEY_BYTES


class Crumbs:
    """The trail of one try of one shard; a context manager.

    Args:
        folder: Folder of the staged job.
        shard: Number of the shard.
        tries: Number of this try.
    """

    def __init__(self, folder: Path, shard: int, tries: int) -> None:
        self.suspects = _suspects(folder, shard, tries)
        self._path = _path(folder, shard, tries)
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)

    def __enter__(self) -> Crumbs:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def watch(self, key: str) -> None:
        """Note that the text of this key is next."""
        os.pwrite(self._file, key.encode("ascii"), 0)

    def clear(self) -> None:
        """Note that no text is in hand."""
        os.pwrite(self._file, _NOTHING, 0)


def _suspects(folder: Path, shard: int, tries: int) -> frozenset[str]:
    trails = [_path(folder, shard, earlier) for earlier in range(1, tries)]
    keys = Counter(trail.read_bytes() for trail in trails if trail.exists())
    deadly = (key for key, deaths in keys.items() if deaths >= DEATHS and key != _NOTHING)
    return frozenset(key.decode("ascii") for key in deadly if len(key) == _KEY_BYTES)


def _path(folder: Path, shard: int, tries: int) -> Path:
    return folder / f"crumb-{shard:06d}-{tries}"
