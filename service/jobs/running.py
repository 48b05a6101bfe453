"""A shard that this process runs: its signals, and its settlement."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from service.jobs.in_flight import InFlightLog
from service.jobs.leases import Leases
from service.jobs.owner_queue import OwnerQueue
from service.jobs.records import Counts, Shard
from service.jobs.steps import StepTimer


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
