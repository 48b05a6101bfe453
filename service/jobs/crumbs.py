"""Which texts a worker had in hand when it died, so that one text cannot cost a whole shard.

Before texts are parsed their keys are written to a small file of this try; the operating system
keeps it whatever becomes of the process. Texts that were in hand together are parsed one by one in
the next try; a text on which two tries ended while it was alone is given up.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

DEATHS = 2
"""Workers that must have ended on a text alone before it is blamed: one may be killed by chance."""

_KEY_BYTES = 32


class Crumbs:
    """The trail of one try of one shard; a context manager.

    Args:
        folder: Folder of the staged job.
        shard: Number of the shard.
        tries: Number of this try.

    Attributes:
        suspects: Keys of the texts that are to blame for the end of earlier tries.
        doubtful: Keys of the texts that were in hand at the end of one.
    """

    def __init__(self, folder: Path, shard: int, tries: int) -> None:
        trails = list(_trails(folder, shard, tries))
        alone = Counter(keys[0] for keys in trails if len(keys) == 1)
        self.suspects = frozenset(key for key, deaths in alone.items() if deaths >= DEATHS)
        self.doubtful = frozenset(key for keys in trails for key in keys)
        path = _path(folder, shard, tries)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self._size = 0

    def __enter__(self) -> Crumbs:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the trail; what is in hand stays noted."""
        os.close(self._file)

    def watch(self, *keys: str) -> None:
        """Note that the texts of these keys are in hand, or that none is."""
        content = "".join(keys).encode("ascii")
        if len(content) < self._size:
            os.ftruncate(self._file, len(content))
        os.pwrite(self._file, content, 0)
        self._size = len(content)


def _trails(folder: Path, shard: int, tries: int) -> Iterator[list[str]]:
    """The keys that were in hand at the end of each earlier try."""
    for earlier in range(1, tries):
        path = _path(folder, shard, earlier)
        content = path.read_bytes().decode("ascii") if path.exists() else ""
        yield [content[at : at + _KEY_BYTES] for at in range(0, len(content), _KEY_BYTES)]


def _path(folder: Path, shard: int, tries: int) -> Path:
    return folder / f"crumb-{shard:06d}-{tries}"
