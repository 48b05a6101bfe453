"""The job tables, for the coordinator: shards are claimed and settled under its name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Event

import structlog

from service.jobs.database import JobDatabaseError
from service.jobs.queue import Failure, JobQueue, LeaseLostError
from service.jobs.records import Counts, Shard
from service.jobs.running import DATABASE_SECONDS

_LOG = structlog.get_logger("parsebank.jobs")


class Desk:
    """Claims and settles shards for one owner, and bears a database that is away for a while.

    Args:
        owner: Name under which it claims.
        queue: Where it claims.
        stop: Set when this process shall end.
    """

    def __init__(self, owner: str, queue: JobQueue, stop: Event) -> None:
        self.lease_seconds = queue.lease_seconds
        self._owner = owner
        self._queue = queue
        self._stop = stop

    def claim(self) -> Shard | None:
        """Take the oldest free shard; ``None`` when there is none, or no database."""
        try:
            return self._queue.claim(self._owner)
        except JobDatabaseError as error:
            _LOG.warning("job database away", reason=error.message)
            return None

    def renew(self, claimed: Iterable[Shard]) -> set[int]:
        """Extend leases; ids of the shards that are to go on."""
        wanted = list(claimed)
        try:
            return self._queue.renew_all(wanted, self._owner)
        except JobDatabaseError as error:
            _LOG.warning("job database away", reason=error.message)
            return {shard.id for shard in wanted}

    def save_plan(self, shard: Shard, plan: Counts) -> None:
        """See `JobQueue.save_plan`.

        Raises:
            LeaseLostError: The shard is another's.
            JobDatabaseError: The database was away for as long as a lease lasts.
        """
        self._insist(lambda: self._queue.save_plan(shard, self._owner, plan))

    def complete(self, shard: Shard, counts: Counts) -> None:
        """Settle a shard whose rows are committed.

        Raises:
            JobDatabaseError: The database was away for as long as a lease lasts.
        """
        try:
            self._insist(lambda: self._queue.complete(shard, self._owner, counts))
        except LeaseLostError as error:
            _LOG.info("shard left", job=shard.job, shard=shard.number, reason=error.message)
            self.release(shard)

    def fail(self, shard: Shard, error: Failure) -> None:
        """Settle a shard that cannot be done."""
        with suppress(JobDatabaseError):  # then its lease runs out
            self._queue.fail(shard, self._owner, error)

    def release(self, shard: Shard, error: Failure | None = None, delay: float = 0.0) -> None:
        """Give a shard back; see `JobQueue.release`."""
        with suppress(JobDatabaseError):  # then its lease runs out
            self._queue.release(shard, self._owner, error, delay)

    def _insist(self, action: Callable[[], None]) -> None:
        """Do what must reach the database, again and again while a lease lasts."""
        deadline = time.monotonic() + self.lease_seconds
        while True:
            try:
                return action()
            except JobDatabaseError:
                if self._stop.wait(DATABASE_SECONDS) or time.monotonic() > deadline:
                    raise
