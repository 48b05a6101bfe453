"""The parser processes of this test process, as the system sees them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

import psutil
from prometheus_client import Histogram


def children(of: int | None = None) -> list[psutil.Process]:
    """Descendants that are parser processes; a dead one has no command line."""
    found = psutil.Process(of).children(recursive=True)
    return [process for process in found if "service.workers.forkserver" in _command(process)]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def workers() -> list[psutil.Process]:
    """The forked ones."""
    return [child for child in children() if child.ppid() != os.getpid()]


def fork_server() -> psutil.Process:
    """The one that has loaded the model."""
    (process,) = (child for child in children() if child.ppid() == os.getpid())
    return process


def is_alive(pid: int) -> bool:
    """Whether a process goes on; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait for something that must happen."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        await asyncio.sleep(0.02)


def summed(histogram: Histogram, suffix: str) -> float:
    """A histogram's ``_sum`` or ``_count``, over all labels."""
    samples = [sample for family in histogram.collect() for sample in family.samples]
    return sum(sample.value for sample in samples if sample.name.endswith(suffix))
