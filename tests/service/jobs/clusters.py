"""A `distributed` scheduler and its workers, each a process that a test may kill."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from .servers import wait_for

KEEPER = 'while :; do "$@"; sleep 0.5; done'
"""As systemd, Kubernetes or a batch script would: a worker that ended is started again."""


@dataclass
class Cluster:
    """A scheduler and workers on loopback; a context manager.

    Attributes:
        folder: Where their logs and files are.
        workers: How many worker processes, each with one thread and a nanny.
        arguments: Further arguments of the workers.
        environment: Further variables of the workers.
    """

    folder: Path
    workers: int = 1
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.start_scheduler()
        worker = ("--nworkers", str(self.workers), "--nthreads", "1", *self.arguments)
        command = _dask("worker", self.address, *worker, "--local-directory", str(self.folder))
        self._keeper = self._start("worker", ["sh", "-c", KEEPER, "sh", *command])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in (self._keeper, self._scheduler):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def start_scheduler(self) -> None:
        command = _dask("scheduler", "--host", "127.0.0.1", "--port", str(self.port))
        self._scheduler = self._start("scheduler", command)

    def kill_scheduler(self) -> None:
        self._scheduler.kill()
        self._scheduler.wait()

    def worker_pids(self) -> list[int]:
        """The processes that run tasks: their nannies started them by `multiprocessing`."""
        return [process.pid for process in self._family() if "spawn_main" in _words(process)]

    def wait_for_workers(self) -> None:
        wait_for(lambda: len(self.worker_pids()) == self.workers)

    def _family(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self._keeper.pid).children(recursive=True)
        return []

    def _start(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            environment = {**os.environ, **self.environment}
            return subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, process_group=0
            )


def _dask(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "dask", program, *arguments, "--no-dashboard"]


def _words(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""
