"""A shard in the hands of a worker: its lease is renewed, and it is settled, whatever happens."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Final

from service.jobs.crumbs import Crumbs
from service.jobs.database import JobDatabaseError
from service.jobs.desk import Desk
from service.jobs.records import Counts, Shard

BEAT_SECONDS: Final = 2.0
"""How often a busy worker renews its lease, and so learns that its job was cancelled."""


class InterruptedByStopError(Exception):
    """The service stops; the shard goes back as it was."""


@dataclass
class RunningShard:
    """The `Signals` of one shard in this process."""

    shard: Shard
    desk: Desk
    crumbs: Crumbs
    stop: threading.Event

    def __post_init__(self) -> None:
        self._pause = min(BEAT_SECONDS, self.desk.lease_seconds / 4)
        self._next_renewal, self._lease_end = self._terms()

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
        if time.monotonic() >= self._next_renewal:
            self._renew()

    def watch(self, *keys: str) -> None:
        """See `Signals.watch`."""
        self.crumbs.watch(*keys)

    def announce(self, plan: Counts) -> None:
        """See `Signals.announce`."""
        self.desk.save_plan(self.shard, plan, self._lease_end)

    def complete(self, counts: Counts) -> None:
        """Settle the shard.

        Raises:
            LeaseLostError: Another worker has the shard, or it is settled already.
            JobDatabaseError: The database was away for as long as the lease lasted.
        """
        self.desk.complete(self.shard, counts, self._lease_end)

    def _renew(self) -> None:
        try:
            self.desk.renew(self.shard)
        except JobDatabaseError:
            if time.monotonic() > self._lease_end:
                raise
            self._next_renewal = time.monotonic() + self._pause
        else:
            self._next_renewal, self._lease_end = self._terms()

    def _terms(self) -> tuple[float, float]:
        """When to renew a lease that begins now, and when it ends."""
        now = time.monotonic()
        return now + self._pause, now + self.desk.lease_seconds
