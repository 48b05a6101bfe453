"""A shard on its way: claimed here, run on some worker of the cluster."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from service.jobs.crumbs import Crumbs
from service.jobs.records import Shard
from service.jobs.staging import StagingArea

if TYPE_CHECKING:
    from distributed import Future


@dataclass
class Flight:
    """One run of a shard.

    Attributes:
        shard: Which shard.
        run: Name of the run.
        future: Its task; dropped with the flight, it is withdrawn.
        worker: Where it runs; ``None`` while it waits for its turn.
        has_begun: Whether it has been given its lines.
        last_sign: When it was last heard of, on the monotonic clock; or told to end.
        is_ending: Whether it was told to end.
    """

    shard: Shard
    run: str = field(default_factory=lambda: secrets.token_hex(16))
    future: Future[None] | None = None
    worker: str | None = None
    has_begun: bool = False
    last_sign: float = 0.0
    is_ending: bool = False
    _crumbs: Crumbs | None = None

    def heard_from(self, worker: str) -> None:
        """Note a sign of life."""
        self.worker = worker
        if not self.is_ending:
            self.last_sign = time.monotonic()

    def begin(self, staging: StagingArea) -> Crumbs:
        """Note that it has been given its lines; the trail of this try."""
        self.has_begun = True
        folder = staging.folder(self.shard.job)
        self._crumbs = Crumbs(folder, self.shard.number, self.shard.tries)
        return self._crumbs

    def end(self) -> None:
        """Note that it was told to end."""
        self.is_ending = True
        self.last_sign = time.monotonic()

    def watch(self, *keys: str) -> None:
        """Note the texts in hand."""
        if self._crumbs is not None:
            self._crumbs.watch(*keys)

    def is_overdue(self, lease_seconds: float) -> bool:
        """Whether it has been silent for too long.

        Once it was told to end its lease is not renewed, and it must be given up before that ends.
        """
        silence = time.monotonic() - self.last_sign
        patience = lease_seconds / 2 if self.is_ending else lease_seconds
        return self.worker is not None and silence > patience

    def close(self) -> None:
        """Withdraw the task, and end the trail."""
        self.future = None
        if self._crumbs is not None:
            self._crumbs.close()
