"""Leases of the running shards, renewed by a timer and never by progress."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Final, Self

import structlog

from service.jobs.database import JobDatabaseError
from service.jobs.owner_queue import OwnerQueue
from service.jobs.records import Shard

RENEWAL_SECONDS: Final = 2.0
"""Longest time between two renewals; a renewal also notices a cancelled job."""

_LOG = structlog.get_logger("parsebank.jobs")


@dataclass(slots=True)
class _Lease:
    shard: Shard
    until: float
    is_lost: bool = False


class Leases:
    """Renews leases in a thread of its own; a context manager.

    A lease lasts however long a worker loads, parses or commits; `service.jobs.steps` limits that
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

    def until(self, shard: Shard) -> float:
        """End of a kept lease, on the monotonic clock."""
        return self._held[shard.claim].until

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
