"""The job tables, for one who claims shards and settles them: under its name, and patiently."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Event
from typing import Final

import structlog

from service.jobs.database import BUSY_SECONDS, JobDatabaseError
from service.jobs.queue import Failure, JobQueue
from service.jobs.records import Counts, Shard

DATABASE_SECONDS: Final = 0.5
"""Between two tries to reach a job database that does not answer."""

_LOG = structlog.get_logger("parsebank.jobs")


class Desk:
    """Claims and settles shards for one owner, and bears a database that is away for a while.

    Args:
        owner: Name under which it claims.
        queue: Where it claims.
        stop: Set when this process shall end.

    Attributes:
        lease_seconds: How long a lease lasts.
        patience: The most seconds for which `save_plan` and `complete` wait for the database.
    """

    def __init__(self, owner: str, queue: JobQueue, stop: Event) -> None:
        self.lease_seconds = queue.lease_seconds
        self.patience = queue.lease_seconds + DATABASE_SECONDS + BUSY_SECONDS
        self._owner = owner
        self._queue = queue
        self._stop = stop

    def claim(self, pause: float = 0.0) -> Shard | None:
        """Take the oldest free shard; ``None`` when there is none, or, after a pause, no database.

        Args:
            pause: Seconds to wait when the database is away.
        """
        try:
            return self._queue.claim(self._owner)
        except JobDatabaseError as error:
            _LOG.warning("job database away", reason=error.message)
            self._stop.wait(pause)
            return None

    def renew(self, shard: Shard) -> None:
        """Extend a lease.

        Raises:
            LeaseLostError: The shard is another's, or its job was cancelled.
            JobDatabaseError: The database is away.
        """
        self._queue.renew(shard, self._owner)

    def renew_all(self, claimed: Iterable[Shard]) -> set[tuple[int, int]]:
        """Extend leases; the claims that are still ours, and whose job was not cancelled.

        Raises:
            JobDatabaseError: The database is away.
        """
        return self._queue.renew_all(claimed, self._owner)

    def save_plan(self, shard: Shard, plan: Counts, lease_end: float | None = None) -> None:
        """See `JobQueue.save_plan`.

        Args:
            shard: A shard of ours.
            plan: What it is about to do.
            lease_end: When its lease ends, on the monotonic clock; without it a lease from now.

        Raises:
            LeaseLostError: The shard is another's.
            JobDatabaseError: The database was away for as long as the lease lasts.
        """
        self._insist(lambda: self._queue.save_plan(shard, self._owner, plan), lease_end)

    def complete(self, shard: Shard, counts: Counts, lease_end: float | None = None) -> None:
        """Settle a shard whose rows are committed; `save_plan` has the arguments.

        Raises:
            LeaseLostError: The shard is another's, or settled already.
            JobDatabaseError: The database was away for as long as the lease lasts.
        """
        self._insist(lambda: self._queue.complete(shard, self._owner, counts), lease_end)

    def fail(self, shard: Shard, error: Failure) -> None:
        """Settle a shard that cannot be done."""
        with suppress(JobDatabaseError):  # then its lease runs out
            self._queue.fail(shard, self._owner, error)

    def release(self, shard: Shard, error: Failure | None = None, delay: float = 0.0) -> None:
        """Give a shard back; see `JobQueue.release`."""
        with suppress(JobDatabaseError):  # then its lease runs out
            self._queue.release(shard, self._owner, error, delay)

    def _insist(self, action: Callable[[], None], lease_end: float | None) -> None:
        """Do what must reach the database, again and again while the lease lasts."""
        deadline = time.monotonic() + self.lease_seconds if lease_end is None else lease_end
        while True:
            try:
                return action()
            except JobDatabaseError:
                if self._stop.wait(DATABASE_SECONDS) or time.monotonic() > deadline:
                    raise
