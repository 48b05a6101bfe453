"""Other processes at a store: begun, watched, killed, and what they were told was safe."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from featurestore import FeatureStore, open_store

from . import writer_process

PROGRAM = Path(writer_process.__file__)


class Writer:
    """One process of `Writers`."""

    def __init__(self, process: Any, out: Path) -> None:
        self._process = process
        self._out = out
        self.kill = process.kill

    @property
    def status(self) -> int | None:
        """How it ended; ``None`` while it runs."""
        status: int | None = self._process.exitcode
        return status

    def finish(self) -> list[str]:
        """The keys that were acknowledged; it must have ended well, or by our hand."""
        self._process.join()
        assert self.status in (0, -signal.SIGKILL), self.errors
        return self.acknowledged

    @property
    def acknowledged(self) -> list[str]:
        """The keys that were acknowledged so far."""
        lines = self._out.read_text().split("\n") if self._out.exists() else [""]
        return [line for line in lines[:-1] if line]

    @property
    def errors(self) -> str:
        """What it wrote to standard error."""
        return Path(f"{self._out}.errors").read_text()


class Writers:
    """Forks processes of one that has imported everything and opened nothing: in milliseconds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self._context = multiprocessing.get_context("forkserver")
        # Each process of `faults` imports what that imports.
        imported = (f"{__package__}.{name}" for name in ("writer_process", "conftest", "trials"))
        self._context.set_forkserver_preload([*imported, *writer_process.PRELOADED])

    def start(
        self,
        mode: str,
        uri: str | Path,
        name: str = "",
        groups: int = 1,
        size: int = 0,
        env: Mapping[str, str] | None = None,
        user: int | None = None,
        largest_file: int | None = None,
    ) -> Writer:
        """Begin a process; see `writer_process`.

        Args:
            mode, uri, name, groups, size: Of the process.
            env: Further environment variables.
            user: Become this user.
            largest_file: Bytes that a file may have.
        """
        self._count += 1
        out = self._folder / str(self._count)
        process = self._context.Process(
            target=writer_process.begin,
            args=((mode, str(uri), name, groups, size, str(out)), env or {}, user, largest_file),
            daemon=True,
        )
        process.start()
        return Writer(process, out)


def assert_kept(store: FeatureStore, acknowledged: list[str]) -> None:
    """Every acknowledged record is there, complete, once to every reader."""
    found = store.parses.get_many(acknowledged)
    assert set(found) == set(acknowledged)
    assert all(record.parse.text == f"{key} ." for key, record in found.items())
    query = "select count(*), count(distinct key) from parses"
    ((rows, keys),) = store.sql(query).fetchall()
    assert rows == keys >= len(set(acknowledged))


def assert_kept_at(uri: str | Path, acknowledged: list[str], **options: dict[str, str]) -> None:
    """The same to who opens the store now."""
    with open_store(uri, **options) as store:
        assert_kept(store, acknowledged)


def raw_parses(store: FeatureStore) -> int:
    """Rows of the table, repeated ones included."""
    return sum(file.rows for file in store.parses.table.snapshot().files)


def wait_for(happened: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)
