"""A shard that this process runs: its time limit, the texts in flight, its signals, its settlement.

One text that kills its worker must not fail a whole shard. Before texts are parsed, their keys are
written to a small file of this try, which survives the process. Texts that were in flight together
are parsed one by one in the next try. A text on which two tries ended while it was alone fails.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from service.jobs.owner_queue import Leases, OwnerQueue
from service.jobs.records import Counts, Shard
from service.jobs.shard import STEP_CHARACTERS


class StepTimer:
    """Ends this process by SIGALRM when a step takes too long; a context manager.

    A step is one group of texts, or any other work between two heartbeats: load a
    parser, align some texts, commit. The timer is the kernel's, whose signal ends a process even
    while a parser's library holds the interpreter. The texts in flight are on disk by then
    (`InFlightLog`), and the shard is run again.

    Args:
        seconds: How long a step may take; texts of more than `STEP_CHARACTERS` in proportion.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> Self:
        self.restart()
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.0)

    def restart(self, characters: int = 0, waiting: float = 0.0) -> None:
        """Begin a step.

        Args:
            characters: Length of the texts that are parsed in it.
            waiting: Seconds for which it may wait besides, as for a database that is away.
        """
        longer = max(1.0, characters / STEP_CHARACTERS)
        signal.setitimer(signal.ITIMER_REAL, self._seconds * longer + waiting)


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


class InterruptedByStopError(Exception):
    """The service stops; the shard is released."""


@dataclass
class RunningShard:
    """The `Signals` of one shard in this process."""

    shard: Shard
    queue: OwnerQueue
    leases: Leases
    in_flight: InFlightLog
    timer: StepTimer
    stop: threading.Event

    @property
    def fatal_keys(self) -> frozenset[str]:
        """See `Signals.fatal_keys`."""
        return self.in_flight.fatal_keys

    @property
    def isolated_keys(self) -> frozenset[str]:
        """See `Signals.isolated_keys`."""
        return self.in_flight.isolated_keys

    def beat(self) -> None:
        """See `Signals.beat`.

        Raises:
            InterruptedByStopError: The service stops.
            LeaseLostError: The job was cancelled, or another worker has the shard.
            JobDatabaseError: The database did not answer until the lease ended.
        """
        if self.stop.is_set():
            raise InterruptedByStopError
        self.leases.check(self.shard)
        self.timer.restart()

    def watch(self, *keys: str, characters: int = 0) -> None:
        """See `Signals.watch`."""
        self.in_flight.watch(*keys)
        self.timer.restart(characters)

    def announce(self, plan: Counts) -> None:
        """See `Signals.announce`."""
        self.timer.restart(waiting=self.queue.max_wait)
        self.queue.save_plan(self.shard, plan, self.leases.until(self.shard))
        self.timer.restart()

    def complete(self, counts: Counts) -> None:
        """Settle the shard.

        Raises:
            LeaseLostError: Another worker has the shard, or it is settled already.
            JobDatabaseError: The database did not answer until the lease ended.
        """
        self.timer.restart(waiting=self.queue.max_wait)
        self.queue.complete(self.shard, counts, self.leases.until(self.shard))
