"""The worker process of backfills: it claims and runs shards until there are none."""

from __future__ import annotations

import gc
import os
import threading
import time
from typing import Final

import structlog

from featurestore import FeatureStore
from service.jobs.database import JobDatabaseError, database_url, open_database
from service.jobs.owner_queue import DATABASE_SECONDS, Leases, OwnerQueue
from service.jobs.processes import WorkerConfig, read_config
from service.jobs.queue import JobQueue, LeaseLostError
from service.jobs.records import Shard
from service.jobs.running import InFlightLog, InterruptedByStopError, RunningShard, StepTimer
from service.jobs.shard import run_shard
from service.jobs.staging import StagedShardError, StagingArea, read_shard
from service.jobs.tools import Toolbox, load_kernels, shard_store
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
"""Seconds between two claims of an idle worker."""

LONGEST_DELAY_SECONDS: Final = 60.0

_PERMANENT: Final = (
    InputError,
    UnknownNameError,
    ModelLoadError,
    MissingExtraError,
    StagedShardError,
    StoreFormatError,
)
"""Errors that another try would repeat."""

_LOG = structlog.get_logger("parsebank.jobs")


def is_permanent(error: Exception) -> bool:
    """Whether another try of a shard would repeat the error."""
    return isinstance(error, _PERMANENT)


def retry_delay(shard: Shard) -> float:
    """Seconds before the next try of a shard that met an error."""
    return min(2.0**shard.tries, LONGEST_DELAY_SECONDS)


class Worker:
    """Runs shards from a queue in this process.

    Args:
        queue: Claims and settles shards.
        staging: Holds the shards' lines.
        toolbox: Store, parsers and tokenizers.
        stop: Set when the worker must stop.
        settings: Limits of a step's time, of idle time, and of growth after the first shard; the
            worker exits when it exceeds one, and the service replaces it.
    """

    def __init__(
        self,
        queue: OwnerQueue,
        staging: StagingArea,
        toolbox: Toolbox,
        stop: threading.Event,
        settings: Settings,
    ) -> None:
        self._queue = queue
        self._staging = staging
        self._toolbox = toolbox
        self._stop = stop
        self._leases = Leases(queue)
        self._growth = Growth(os.getpid())
        self._settings = settings

    def work(self) -> None:
        """Run shards until the worker must stop, has grown too large, or is idle for too long."""
        idle_since = time.monotonic()
        idle_seconds = self._settings.job_idle_seconds
        with self._leases:
            while not self._stop.is_set() and time.monotonic() - idle_since < idle_seconds:
                shard = self._queue.claim(pause=DATABASE_SECONDS)
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
        """Run a claimed shard and settle it."""
        log = _LOG.bind(job=shard.job, shard=shard.number, tries=shard.tries)
        started = time.monotonic()
        self._leases.keep(shard)
        try:
            self._do(shard)
        except (InterruptedByStopError, JobDatabaseError):
            self._queue.release(shard)
        except LeaseLostError as error:
            log.info("shard left", reason=error.message)
            self._queue.release(shard)
        except _PERMANENT as error:
            log.error("shard failed", reason=headline(error))
            self._queue.fail(shard, error)
        except Exception as error:  # recorded with the shard, which fails with it at the last try
            delay = retry_delay(shard)
            log.exception("shard will be tried again", delay=delay)
            self._queue.release(shard, error, delay)
        else:
            log.debug("shard done", seconds=round(time.monotonic() - started, 2))
        finally:
            self._leases.drop(shard)

    def _do(self, shard: Shard) -> None:
        folder = self._staging.folder(shard.job)
        with StepTimer(self._settings.job_text_seconds) as timer:
            lines = read_shard(folder, shard.number).lines()
            with InFlightLog(folder, shard.number, shard.tries) as in_flight:
                running = RunningShard(
                    shard, self._queue, self._leases, in_flight, timer, self._stop
                )
                tools = self._toolbox.tools(shard.request)
                _let_collect(self._toolbox.makes_cycles(shard.request))
                running.complete(run_shard(shard, lines, tools, running))


def main() -> None:
    """Run the worker that standard input configures."""
    config, stop = read_config()
    give_way(config.settings.job_nice)
    load_kernels()
    _rest_collector()
    with shard_store(config.settings.store) as store:
        _worker(config, store, stop).work()


def _rest_collector() -> None:
    """Run the garbage collector only between shards.

    A shard makes many thousand lists and no cycles; collecting takes 2 percent of its time.
    """
    gc.collect()
    gc.freeze()
    gc.disable()


def _let_collect(cycles: bool) -> None:
    """Enable the collector for parsers that make cycles."""
    if cycles:
        gc.enable()
    else:
        gc.disable()


def _worker(config: WorkerConfig, store: FeatureStore, stop: threading.Event) -> Worker:
    settings = config.settings
    engine = open_database(database_url(settings))
    return Worker(
        OwnerQueue(config.owner, JobQueue.of(engine, settings), stop),
        StagingArea.of(settings),
        Toolbox(settings, store),
        stop,
        settings,
    )


if __name__ == "__main__":
    main()
