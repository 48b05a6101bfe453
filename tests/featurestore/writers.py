"""Other processes at a store: begun, watched, killed, and what they were told was safe."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from featurestore import FeatureStore, open_store

PROGRAM = Path(__file__).parent / "writer_process.py"


class Writer:
    """One process of `Writers`."""

    def __init__(self, writers: Writers, pid: int, out: Path) -> None:
        self._writers = writers
        self._pid = pid
        self._out = out
        self._status: int | None = None

    @property
    def status(self) -> int | None:
        """How it ended; ``None`` while it runs."""
        if self._status is None:
            self._status = self._writers.ask(pid=self._pid, wait=False)
        return self._status

    def kill(self) -> None:
        """End it at once, wherever it is."""
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)

    def finish(self) -> list[str]:
        """The keys that were acknowledged; it must have ended well, or by our hand."""
        if self._status is None:
            self._status = self._writers.ask(pid=self._pid, wait=True)
        assert self._status in (0, -signal.SIGKILL), self.errors
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
    """A process that has imported everything and opened nothing, and forks those that write."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

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
        arguments = [mode, str(uri), name, str(groups), str(size), str(out)]
        pid = self.ask(
            arguments=arguments, env=dict(env or {}), user=user, largest_file=largest_file
        )
        assert pid is not None
        return Writer(self, pid, out)

    def ask(self, **order: object) -> int | None:
        """What the process answers to a line of JSON."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer: int | None = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=240)


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
