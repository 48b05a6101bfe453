"""The process that works on shards: claims one after the other until there are none."""

from __future__ import annotations

import gc
import os
import threading
import time
from typing import Final

import structlog

from featurestore import FeatureStore
from service.jobs.crumbs import Crumbs
from service.jobs.database import JobDatabaseError, open_database
from service.jobs.desk import DATABASE_SECONDS, Desk
from service.jobs.leases import Leases
from service.jobs.orders import Orders, take_orders
from service.jobs.queue import LeaseLostError
from service.jobs.records import Shard
from service.jobs.running import InterruptedByStopError, RunningShard
from service.jobs.shard import run_shard
from service.jobs.staging import StagedShardError, StagingArea, read_shard
from service.jobs.steps import StepTimer
from service.jobs.tools import Toolbox, load_kernels, shard_store
from service.jobs.wiring import database_url, job_queue, staging_area
from service.logs import headline
from service.processes import give_way
from service.settings import Settings
from service.workers.memory import Growth
from syntax.errors import (
    InputError,
    MissingExtraError,
    ModelLoadError,
    StoreFormatError,
    UnknownNameError,
)

POLL_SECONDS: Final = 0.1
"""How often an idle worker looks for a shard."""

LONGEST_DELAY_SECONDS: Final = 60.0

_NICENESS: Final = 10
"""Texts of jobs can wait for those of requests, whose parsers have half of it."""

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


def is_permanent(error: Exception) -> bool:
    """Whether running a shard again would only repeat the error."""
    return isinstance(error, _PERMANENT)


def retry_delay(shard: Shard) -> float:
    """Seconds after which a shard that met an error is tried again."""
    return min(2.0**shard.tries, LONGEST_DELAY_SECONDS)


class Worker:
    """Runs shards from a queue in this process.

    Args:
        desk: Where it claims and settles shards.
        staging: Where the shards' lines are.
        toolbox: What it works with.
        stop: Set when it shall end.
        settings: How long a step may take, when it is idle for too long, and by how much it may
            grow after its first shard; then it ends, to be replaced.
    """

    def __init__(
        self,
        desk: Desk,
        staging: StagingArea,
        toolbox: Toolbox,
        stop: threading.Event,
        settings: Settings,
    ) -> None:
        self._desk = desk
        self._staging = staging
        self._toolbox = toolbox
        self._stop = stop
        self._leases = Leases(desk)
        self._growth = Growth(os.getpid())
        self._settings = settings

    def work(self) -> None:
        """Run shards until told to stop, grown too large, or idle for too long."""
        idle_since = time.monotonic()
        idle_seconds = self._settings.job_idle_seconds
        with self._leases:
            while not self._stop.is_set() and time.monotonic() - idle_since < idle_seconds:
                shard = self._desk.claim(pause=DATABASE_SECONDS)
                if shard is None:
                    self._stop.wait(POLL_SECONDS)
                    continue
                self._run(shard)
                gc.collect()
                if self._growth.bytes() > self._settings.worker_max_growth_mb * 2**20:
                    _LOG.info("worker has grown", pid=os.getpid())
                    return
                idle_since = time.monotonic()

    def _run(self, shard: Shard) -> None:
        """Run a claimed shard and settle it, whatever comes of it."""
        log = _LOG.bind(job=shard.job, shard=shard.number, tries=shard.tries)
        started = time.monotonic()
        self._leases.keep(shard)
        try:
            self._do(shard)
        except (InterruptedByStopError, JobDatabaseError):
            self._desk.release(shard)
        except LeaseLostError as error:
            log.info("shard left", reason=error.message)
            self._desk.release(shard)
        except _PERMANENT as error:
            log.error("shard failed", reason=headline(error))
            self._desk.fail(shard, error)
        except Exception as error:  # recorded with the shard, and failed with it in the end
            delay = retry_delay(shard)
            log.exception("shard will be tried again", delay=delay)
            self._desk.release(shard, error, delay)
        else:
            log.debug("shard done", seconds=round(time.monotonic() - started, 2))
        finally:
            self._leases.drop(shard)

    def _do(self, shard: Shard) -> None:
        folder = self._staging.folder(shard.job)
        with StepTimer(self._settings.job_text_seconds) as timer:
            lines = read_shard(folder, shard.number).lines()
            with Crumbs(folder, shard.number, shard.tries) as crumbs:
                running = RunningShard(shard, self._desk, self._leases, crumbs, timer, self._stop)
                tools = self._toolbox.tools(shard.request)
                _let_collect(self._toolbox.makes_cycles(shard.request))
                running.complete(run_shard(shard, lines, tools, running))


def main() -> None:
    """Run the worker that standard input describes."""
    orders, stop = take_orders()
    give_way(_NICENESS)
    load_kernels()
    _rest_collector()
    with shard_store(orders.settings.store) as store:
        _worker(orders, store, stop).work()


def _rest_collector() -> None:
    """Leave the garbage collector for the time between shards.

    A shard makes many thousand lists and no cycles; looking through them takes 2 percent.
    """
    gc.collect()
    gc.freeze()
    gc.disable()


def _let_collect(cycles: bool) -> None:
    """Have cycles collected where there are: some libraries make objects per word."""
    if cycles:
        gc.enable()
    else:
        gc.disable()


def _worker(orders: Orders, store: FeatureStore, stop: threading.Event) -> Worker:
    settings = orders.settings
    engine = open_database(database_url(settings))
    return Worker(
        Desk(orders.owner, job_queue(engine, settings), stop),
        staging_area(settings),
        Toolbox(settings, store),
        stop,
        settings,
    )


if __name__ == "__main__":
    main()
