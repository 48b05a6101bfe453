"""The leases of the shards in hand: renewed by a timer, never by progress."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Final, Self

import structlog

from service.jobs.database import JobDatabaseError
from service.jobs.desk import Desk
from service.jobs.records import Shard

RENEWAL_SECONDS: Final = 2.0
"""How often leases are renewed, at most; so a cancelled job is noticed."""

_LOG = structlog.get_logger("parsebank.jobs")


@dataclass(slots=True)
class _Lease:
    shard: Shard
    until: float
    is_lost: bool = False


class Leases:
    """Renews leases from a thread of its own, as long as this process runs; a context manager.

    However long a worker loads, parses or commits, its lease lasts. How long it may do so is for
    `service.jobs.steps` to say.

    Args:
        desk: Where they are renewed.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._held: dict[tuple[int, int], _Lease] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="leases", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def keep(self, shard: Shard) -> None:
        """Renew the lease of a shard that was claimed just now, until `drop`."""
        self._held[shard.claim] = _Lease(shard, self._end())

    def drop(self, shard: Shard) -> None:
        """Renew it no longer."""
        self._held.pop(shard.claim, None)

    def until(self, shard: Shard) -> float:
        """When a lease that is kept ends, on the monotonic clock."""
        return self._held[shard.claim].until

    def is_lost(self, shard: Shard) -> bool:
        """Whether the job was cancelled, or the shard was claimed again."""
        return self._held[shard.claim].is_lost

    def check(self, shard: Shard) -> None:
        """Make sure that a shard is still ours.

        Raises:
            LeaseLostError: The job was cancelled, or another worker has the shard.
            JobDatabaseError: The database was away for as long as the lease lasted.
        """
        lease = self._held[shard.claim]
        if lease.is_lost or time.monotonic() > lease.until:
            self._desk.renew(shard)

    def _end(self) -> float:
        return time.monotonic() + self._desk.lease_seconds

    def _renew(self) -> None:
        while not self._over.wait(min(RENEWAL_SECONDS, self._desk.lease_seconds / 4)):
            leases = list(self._held.values())
            if not leases:
                continue
            end = self._end()
            try:
                kept = self._desk.renew_all(lease.shard for lease in leases)
            except JobDatabaseError as error:
                _LOG.warning("job database away", reason=error.message)
                continue
            except Exception:  # logged, and tried again: leases must not end in silence
                _LOG.exception("cannot renew leases")
                continue
            for lease in leases:
                lease.is_lost = lease.shard.claim not in kept
                lease.until = end
