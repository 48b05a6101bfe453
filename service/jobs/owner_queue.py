"""The job queue of one owner, which waits while the job database does not answer."""

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
"""Seconds between two attempts to reach the job database."""

_LOG = structlog.get_logger("parsebank.jobs")


class OwnerQueue:
    """Claims and settles shards for one owner, and tolerates outages of the database.

    Args:
        owner: Name of the process that claims.
        queue: The job queue.
        stop: Set when this process must stop.

    Attributes:
        max_wait: Most seconds that `save_plan` and `complete` wait for the database.
    """

    def __init__(self, owner: str, queue: JobQueue, stop: Event) -> None:
        self.lease_seconds = queue.lease_seconds
        self.max_wait = queue.lease_seconds + DATABASE_SECONDS + BUSY_SECONDS
        self._owner = owner
        self._queue = queue
        self._stop = stop

    def claim(self, pause: float = 0.0) -> Shard | None:
        """Claim the oldest free shard; ``None`` if there is none or the database does not answer.

        Args:
            pause: Seconds to wait if the database does not answer.
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
            LeaseLostError: Another owner has the shard, or its job was cancelled.
            JobDatabaseError: The database does not answer.
        """
        self._queue.renew(shard, self._owner)

    def renew_all(self, claimed: Iterable[Shard]) -> set[tuple[int, int]]:
        """Extend leases; returns the claims that are still valid.

        Raises:
            JobDatabaseError: The database does not answer.
        """
        return self._queue.renew_all(claimed, self._owner)

    def save_plan(self, shard: Shard, plan: Counts, lease_end: float | None = None) -> None:
        """See `JobQueue.save_plan`.

        Args:
            shard: A shard of this owner.
            plan: The counts of its coming commits.
            lease_end: End of the lease on the monotonic clock; one lease from now if left out.

        Raises:
            LeaseLostError: Another owner has the shard.
            JobDatabaseError: The database did not answer until the lease ended.
        """
        self._insist(lambda: self._queue.save_plan(shard, self._owner, plan), lease_end)

    def complete(self, shard: Shard, counts: Counts, lease_end: float | None = None) -> None:
        """Settle a shard whose rows are committed; arguments as for `save_plan`.

        Raises:
            LeaseLostError: Another owner has the shard, or it is settled already.
            JobDatabaseError: The database did not answer until the lease ended.
        """
        self._insist(lambda: self._queue.complete(shard, self._owner, counts), lease_end)

    def fail(self, shard: Shard, error: Failure) -> None:
        """Settle a shard that failed for good."""
        with suppress(JobDatabaseError):  # then its lease expires
            self._queue.fail(shard, self._owner, error)

    def release(self, shard: Shard, error: Failure | None = None, delay: float = 0.0) -> None:
        """Give a shard back; see `JobQueue.release`."""
        with suppress(JobDatabaseError):  # then its lease expires
            self._queue.release(shard, self._owner, error, delay)

    def _insist(self, action: Callable[[], None], lease_end: float | None) -> None:
        """Repeat an action until the database answers or the lease ends."""
        deadline = time.monotonic() + self.lease_seconds if lease_end is None else lease_end
        while True:
            try:
                return action()
            except JobDatabaseError:
                if self._stop.wait(DATABASE_SECONDS) or time.monotonic() > deadline:
                    raise
