"""The process that works on shards: claims one after the other until there are none.

It is started with its orders on standard input, one line of JSON, and watches that pipe: when it
closes, the service stops or is dead, and the worker gives its shard back and ends.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from typing import Final

import structlog

from featurestore import FeatureStore, open_store
from service.jobs.crumbs import Crumbs
from service.jobs.orders import GRACE_SECONDS, Orders
from service.jobs.queue import JobQueue, LeaseLostError
from service.jobs.records import Counts, Shard
from service.jobs.shard import run_shard
from service.jobs.staging import StagedShardError, StagingArea, read_shard
from service.jobs.tables import open_database
from service.jobs.tools import Toolbox, load_kernels
from service.jobs.wiring import database_url, job_queue, staging_area
from service.logs import configure_logging
from service.processes import die_with
from syntax.errors import (
    InputError,
    MissingExtraError,
    ModelLoadError,
    StoreFormatError,
    UnknownNameError,
)

POLL_SECONDS: Final = 0.1
"""How often an idle worker looks for a shard."""

BEAT_SECONDS: Final = 2.0
"""How often a busy worker renews its lease, and so learns that its job was cancelled."""

LONGEST_DELAY_SECONDS: Final = 60.0

_PERMANENT: Final = (
    InputError,
    UnknownNameError,
    ModelLoadError,
    MissingExtraError,
    StagedShardError,
    StoreFormatError,
)
"""Errors that trying again would only repeat."""

_LOG = structlog.get_logger("parsebank.jobs")


class InterruptedByStopError(Exception):
    """The service stops; the shard goes back as it was."""


@dataclass
class RunningShard:
    """The `Signals` of one shard in this process."""

    shard: Shard
    owner: str
    queue: JobQueue
    crumbs: Crumbs
    stop: threading.Event

    def __post_init__(self) -> None:
        self._pause = min(BEAT_SECONDS, self.queue.lease_seconds / 4)
        self._next_renewal = time.monotonic() + self._pause

    @property
    def suspects(self) -> frozenset[str]:
        """See `Signals.suspects`."""
        return self.crumbs.suspects

    def beat(self) -> None:
        """See `Signals.beat`.

        Raises:
            InterruptedByStopError: The service stops.
            LeaseLostError: The job was cancelled, or another worker has the shard.
        """
        if self.stop.is_set():
            raise InterruptedByStopError
        if time.monotonic() >= self._next_renewal:
            self.queue.renew(self.shard, self.owner)
            self._next_renewal = time.monotonic() + self._pause

    def watch(self, key: str | None) -> None:
        """See `Signals.watch`."""
        if key is None:
            self.crumbs.clear()
        else:
            self.crumbs.watch(key)

    def announce(self, plan: Counts) -> None:
        """See `Signals.announce`."""
        self.queue.save_plan(self.shard, self.owner, plan)


class Worker:
    """Runs shards from a queue in this process.

    Args:
        owner: Name under which it claims.
        queue: Where it claims.
        staging: Where the shards' lines are.
        toolbox: What it works with.
        stop: Set when it shall end.
    """

    def __init__(
        self,
        owner: str,
        queue: JobQueue,
        staging: StagingArea,
        toolbox: Toolbox,
        stop: threading.Event,
    ) -> None:
        self._owner = owner
        self._queue = queue
        self._staging = staging
        self._toolbox = toolbox
        self._stop = stop

    def work(self, idle_seconds: float) -> None:
        """Run shards until told to stop, or until there was none for ``idle_seconds``."""
        idle_since = time.monotonic()
        while not self._stop.is_set() and time.monotonic() - idle_since < idle_seconds:
            shard = self._queue.claim(self._owner)
            if shard is None:
                self._stop.wait(POLL_SECONDS)
            else:
                self.run(shard)
                gc.collect()
                idle_since = time.monotonic()

    def run(self, shard: Shard) -> None:
        """Run a claimed shard and settle it, whatever comes of it."""
        log = _LOG.bind(job=shard.job, shard=shard.number, tries=shard.tries)
        started = time.monotonic()
        try:
            counts = self._counts(shard)
            self._queue.complete(shard, self._owner, counts)
        except InterruptedByStopError:
            self._queue.release(shard, self._owner)
        except LeaseLostError as error:
            log.info("shard left", reason=error.message)
            self._queue.release(shard, self._owner)
        except _PERMANENT as error:
            log.error("shard failed", error_type=error.error_type, reason=error.message)
            self._queue.fail(shard, self._owner, error)
        except Exception as error:  # recorded with the shard, and failed with it in the end
            delay = min(2.0**shard.tries, LONGEST_DELAY_SECONDS)
            log.exception("shard will be tried again", delay=delay)
            self._queue.release(shard, self._owner, error, delay)
        else:
            log.debug("shard done", seconds=round(time.monotonic() - started, 2))

    def _counts(self, shard: Shard) -> Counts:
        folder = self._staging.folder(shard.job)
        lines = read_shard(folder, shard.number)
        tools = self._toolbox.tools(shard.request)
        with Crumbs(folder, shard.number, shard.tries) as crumbs:
            running = RunningShard(shard, self._owner, self._queue, crumbs, self._stop)
            return run_shard(shard, lines, tools, running)


def main() -> None:
    """Run the worker that standard input describes."""
    orders = Orders.model_validate_json(sys.stdin.readline())
    die_with(parent=orders.parent)
    configure_logging(orders.settings.log_level)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop = threading.Event()
    threading.Thread(target=_watch_pipe, args=(stop,), daemon=True).start()
    load_kernels()
    _rest_collector()
    with open_store(orders.settings.store) as store:
        _worker(orders, store, stop).work(orders.settings.job_idle_seconds)


def _rest_collector() -> None:
    """Leave the garbage collector for the time between shards.

    A shard makes many thousand lists and no cycles; looking through them takes 2 percent.
    """
    gc.collect()
    gc.freeze()
    gc.disable()


def _worker(orders: Orders, store: FeatureStore, stop: threading.Event) -> Worker:
    settings = orders.settings
    engine = open_database(database_url(settings))
    return Worker(
        orders.owner,
        job_queue(engine, settings),
        staging_area(settings),
        Toolbox(settings, store),
        stop,
    )


def _watch_pipe(stop: threading.Event) -> None:
    """Ask the worker to end when the service closes the pipe, and end it if it does not."""
    sys.stdin.read()
    stop.set()
    time.sleep(GRACE_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
