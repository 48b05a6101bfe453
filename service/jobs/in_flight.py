"""The in-flight log of a shard: the texts that a worker was parsing when it died.

One text that kills its worker must not fail a whole shard. Before texts are parsed, their keys are
written to a small file of this try, which survives the process. Texts that were in flight together
are parsed one by one in the next try. A text on which two tries ended while it was alone fails.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

DEATHS = 2
"""Workers that must die on a text alone before it fails: one may be killed by chance."""

_KEY_BYTES = 32


class InFlightLog:
    """The in-flight log of one try of one shard; a context manager.

    Args:
        folder: Folder of the staged job.
        shard: Number of the shard.
        tries: Number of this try.

    Attributes:
        fatal_keys: Keys of the texts that ended earlier tries.
        isolated_keys: Keys of the texts that were in flight at the end of an earlier try.
    """

    def __init__(self, folder: Path, shard: int, tries: int) -> None:
        trails = list(_trails(folder, shard, tries))
        alone = Counter(keys[0] for keys in trails if len(keys) == 1)
        self.fatal_keys = frozenset(key for key, deaths in alone.items() if deaths >= DEATHS)
        self.isolated_keys = frozenset(key for keys in trails for key in keys)
        path = _path(folder, shard, tries)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self._size = 0

    def __enter__(self) -> InFlightLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the texts in flight stay in it."""
        os.close(self._file)

    def watch(self, *keys: str) -> None:
        """Record the keys of the texts that are parsed next; none ends the record."""
        content = "".join(keys).encode("ascii")
        if len(content) < self._size:
            os.ftruncate(self._file, len(content))
        os.pwrite(self._file, content, 0)
        self._size = len(content)


def _trails(folder: Path, shard: int, tries: int) -> Iterator[list[str]]:
    """The keys that were in flight at the end of each earlier try."""
    for earlier in range(1, tries):
        path = _path(folder, shard, earlier)
        content = path.read_bytes().decode("ascii") if path.exists() else ""
        yield [content[at : at + _KEY_BYTES] for at in range(0, len(content), _KEY_BYTES)]


def _path(folder: Path, shard: int, tries: int) -> Path:
    return folder / f"crumb-{shard:06d}-{tries}"
