"""The job queue of one owner: its claims, and their leases, while the database may be away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from threading import Event
from typing import Final, Self

import structlog

from service.jobs.database import BUSY_SECONDS, JobDatabaseError
from service.jobs.queue import JobQueue
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

    def save_plan(self, shard: Shard, plan: Counts) -> None:
        """See `JobQueue.save_plan`.

        Raises:
            LeaseLostError: Another owner has the shard.
            JobDatabaseError: The database did not answer for a lease.
        """
        self._insist(lambda: self._queue.save_plan(shard, self._owner, plan))

    def complete(self, shard: Shard, counts: Counts) -> None:
        """Settle a shard whose rows are committed.

        Raises:
            LeaseLostError: Another owner has the shard, or it is settled already.
            JobDatabaseError: The database did not answer for a lease.
        """
        self._insist(lambda: self._queue.complete(shard, self._owner, counts))

    def fail(self, shard: Shard, error: BaseException) -> None:
        """Settle a shard that failed for good."""
        with suppress(JobDatabaseError):  # then its lease expires
            self._queue.fail(shard, self._owner, error)

    def release(self, shard: Shard, error: BaseException | None = None, delay: float = 0.0) -> None:
        """Give a shard back; see `JobQueue.release`."""
        with suppress(JobDatabaseError):  # then its lease expires
            self._queue.release(shard, self._owner, error, delay)

    def _insist(self, action: Callable[[], None]) -> None:
        """Repeat an action until the database answers, for as long as a lease lasts."""
        deadline = time.monotonic() + self.lease_seconds
        while True:
            try:
                return action()
            except JobDatabaseError:
                if self._stop.wait(DATABASE_SECONDS) or time.monotonic() > deadline:
                    raise


RENEWAL_SECONDS: Final = 2.0
"""Longest time between two renewals; a renewal also notices a cancelled job."""


@dataclass(slots=True)
class _Lease:
    shard: Shard
    until: float
    is_lost: bool = False


class Leases:
    """Renews leases in a thread of its own; a context manager.

    A lease lasts however long a worker loads, parses or commits; `service.jobs.worker` limits that
    time.
    """

    def __init__(self, queue: OwnerQueue) -> None:
        self._queue = queue
        self._held: dict[tuple[int, int], _Lease] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="leases", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def keep(self, shard: Shard) -> None:
        """Renew the lease of a shard, which was claimed just now, until `drop`."""
        self._held[shard.claim] = _Lease(shard, self._end())

    def drop(self, shard: Shard) -> None:
        """Stop renewing the lease of a shard."""
        self._held.pop(shard.claim, None)

    def is_lost(self, shard: Shard) -> bool:
        """Whether the job was cancelled, or the shard was claimed again."""
        return self._held[shard.claim].is_lost

    def check(self, shard: Shard) -> None:
        """Check that this process still holds a shard.

        Raises:
            LeaseLostError: The job was cancelled, or another worker has the shard.
            JobDatabaseError: The database did not answer until the lease ended.
        """
        lease = self._held[shard.claim]
        if lease.is_lost or time.monotonic() > lease.until:
            self._queue.renew(shard)

    def _end(self) -> float:
        return time.monotonic() + self._queue.lease_seconds

    def _renew(self) -> None:
        while not self._over.wait(min(RENEWAL_SECONDS, self._queue.lease_seconds / 4)):
            leases = list(self._held.values())
            if not leases:
                continue
            end = self._end()
            try:
                kept = self._queue.renew_all(lease.shard for lease in leases)
            except JobDatabaseError as error:
                _LOG.warning("job database away", reason=error.message)
                continue
            except Exception:  # logged and tried again: a lease must not expire unnoticed
                _LOG.exception("cannot renew leases")
                continue
            for lease in leases:
                lease.is_lost = lease.shard.claim not in kept
                lease.until = end
