"""A shard in the hands of a worker: what it tells on its way, and how it is settled."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from service.jobs.crumbs import Crumbs
from service.jobs.desk import Desk
from service.jobs.leases import Leases
from service.jobs.records import Counts, Shard
from service.jobs.steps import StepTimer


class InterruptedByStopError(Exception):
    """The service stops; the shard goes back as it was."""


@dataclass
class RunningShard:
    """The `Signals` of one shard in this process."""

    shard: Shard
    desk: Desk
    leases: Leases
    crumbs: Crumbs
    timer: StepTimer
    stop: threading.Event

    @property
    def suspects(self) -> frozenset[str]:
        """See `Signals.suspects`."""
        return self.crumbs.suspects

    @property
    def doubtful(self) -> frozenset[str]:
        """See `Signals.doubtful`."""
        return self.crumbs.doubtful

    def beat(self) -> None:
        """See `Signals.beat`.

        Raises:
            InterruptedByStopError: The service stops.
            LeaseLostError: The job was cancelled, or another worker has the shard.
            JobDatabaseError: The database was away for as long as the lease lasted.
        """
        if self.stop.is_set():
            raise InterruptedByStopError
        self.leases.check(self.shard)
        self.timer.restart()

    def watch(self, *keys: str, characters: int = 0) -> None:
        """See `Signals.watch`."""
        self.crumbs.watch(*keys)
        self.timer.restart(characters)

    def announce(self, plan: Counts) -> None:
        """See `Signals.announce`."""
        self.timer.restart(waiting=self.desk.patience)
        self.desk.save_plan(self.shard, plan, self.leases.until(self.shard))
        self.timer.restart()

    def complete(self, counts: Counts) -> None:
        """Settle the shard.

        Raises:
            LeaseLostError: Another worker has the shard, or it is settled already.
            JobDatabaseError: The database was away for as long as the lease lasted.
        """
        self.timer.restart(waiting=self.desk.patience)
        self.desk.complete(self.shard, counts, self.leases.until(self.shard))
