"""A shard that is claimed here and runs on a worker of the cluster."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from service.jobs.records import Shard
from service.jobs.running import InFlightLog
from service.jobs.staging import StagingArea

if TYPE_CHECKING:
    from distributed import Future


@dataclass
class RunningTask:
    """One run of a shard.

    Attributes:
        future: The scheduler's future; dropping it cancels the task.
        worker: Address of its worker; ``None`` while it is queued.
        has_begun: Whether it has received its lines.
        last_sign: Time of the last message, or of the order to stop, on the monotonic clock.
        is_ending: Whether it was told to stop.
    """

    shard: Shard
    run: str = field(default_factory=lambda: secrets.token_hex(16))
    future: Future[None] | None = None
    worker: str | None = None
    has_begun: bool = False
    last_sign: float = 0.0
    is_ending: bool = False
    _in_flight: InFlightLog | None = None

    def heard_from(self, worker: str) -> None:
        """Record a message of the task."""
        self.worker = worker
        if not self.is_ending:
            self.last_sign = time.monotonic()

    def begin(self, staging: StagingArea) -> InFlightLog:
        """Record that it has received its lines; returns the in-flight log of this try."""
        self.has_begun = True
        folder = staging.folder(self.shard.job)
        self._in_flight = InFlightLog(folder, self.shard.number, self.shard.tries)
        return self._in_flight

    def end(self) -> None:
        """Record that it was told to stop."""
        self.is_ending = True
        self.last_sign = time.monotonic()

    def watch(self, *keys: str) -> None:
        """Record the texts in flight."""
        if self._in_flight is not None:
            self._in_flight.watch(*keys)

    def is_overdue(self, lease_seconds: float) -> bool:
        """Whether it has been silent for too long.

        After the order to stop, its lease is no longer renewed, so the limit is half a lease.
        """
        silence = time.monotonic() - self.last_sign
        max_wait = lease_seconds / 2 if self.is_ending else lease_seconds
        return self.worker is not None and silence > max_wait

    def close(self) -> None:
        """Cancel the task, and close the in-flight log."""
        self.future = None
        if self._in_flight is not None:
            self._in_flight.close()
