"""Child processes that end with the block that starts them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from syntax.errors import WorkError

_GRACE_SECONDS = 15.0


def parsebank(*arguments: str) -> list[str]:
    """Command line of ``parsebank``, which need not be on the PATH."""
    return [sys.executable, "-P", "-m", "parsebank", *arguments]


@contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in its own process group, its output in ``log``; end the group afterwards."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process
    finally:
        _signal_group(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
        _signal_group(process, signal.SIGKILL)
        process.wait()


def finish(command: Sequence[str], log: Path) -> None:
    """Run a command to its end; a `WorkError` has the end of its log."""
    with running(command, log) as process:
        if process.wait() != 0:
            raise failed(command, log, f"exited with {process.returncode}")


def wait_until(
    ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, seconds: float
) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if process.poll() is not None:
            raise failed(process.args, log, f"exited with {process.returncode}")
        if time.monotonic() > deadline:
            raise failed(process.args, log, f"was not ready after {seconds:.0f} s")
        time.sleep(0.1)


def failed(command: object, log: Path, how: str) -> WorkError:
    shown = " ".join(command) if isinstance(command, list | tuple) else str(command)
    lines = log.read_text("utf-8", "replace").splitlines()[-20:]
    return WorkError("\n".join([f"`{shown}` {how}; the end of {log}:", *lines]))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def termination_unwinds() -> Iterator[None]:
    """Make SIGTERM run ``finally`` blocks, as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
