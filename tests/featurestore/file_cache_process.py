"""Fetches a file into a cache, slowly, for tests that race and kill.

Arguments: the cache's folder, its bound, the URL, the file, the chunk, and how many chunks to read
before waiting for a line on the standard input. Prints a line for every chunk it reads.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

from featurestore.tables.file_cache import FileCache


class Slow:
    """A file whose reading stops at a chunk until somebody writes a line."""

    def __init__(self, path: str, stop: int) -> None:
        self._file = pa.OSFile(path)
        self._stop = stop

    def __enter__(self) -> Slow:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def size(self) -> int:
        return self._file.size()

    def seek(self, position: int) -> int:
        return self._file.seek(position)

    def read(self, size: int) -> bytes:
        print("reads", self._file.tell(), flush=True)  # noqa: T201
        if self._stop == 0:
            sys.stdin.readline()
        self._stop -= 1
        return bytes(self._file.read(size))


def main() -> None:
    folder, bound, url, path, chunk, stop = sys.argv[1:]
    cache = FileCache(Path(folder), int(bound), int(chunk))
    fetched = cache.fetch(url, lambda: Slow(path, int(stop)))  # type: ignore[arg-type,return-value]
    print("fetched" if fetched else "direct", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
