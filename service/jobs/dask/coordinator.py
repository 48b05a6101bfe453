"""The process that runs shards on a cluster: it claims them, and settles what comes of them.

It stands for all workers of the cluster, which see neither the job tables nor the staged uploads.
What a worker of this machine does for itself is done here on behalf of each: the lease is renewed,
the texts in flight and the announced counts are saved, the shard is settled.

A few shards for each worker are out at any time; all others wait in the job tables. No task is
run twice: one that begins again, because the scheduler gave it to another worker when its own had
died, is told to stop, and its shard is claimed anew. So every try counts, and knows of the others.
"""

from __future__ import annotations

import resource
import threading
import time
from queue import SimpleQueue
from typing import Final

import structlog

from service.jobs.dask.channel import TaskSpec, ensure_store_id, own_version, settings_json
from service.jobs.dask.cluster import Cluster, ClusterLostError, News
from service.jobs.dask.session import Session
from service.jobs.database import database_url, open_database
from service.jobs.owner_queue import Leases, OwnerQueue
from service.jobs.processes import read_config
from service.jobs.queue import JobQueue
from service.jobs.running import StepTimer
from service.jobs.staging import StagingArea
from service.settings import Settings

RETRY_SECONDS: Final = 1.0
"""Between two tries to reach the scheduler."""

_LOG = structlog.get_logger("parsebank.jobs")


class Coordinator:
    """Runs the shards of a queue on the cluster that the settings name.

    Args:
        settings: The service's settings.
        queue: Where shards are claimed and settled.
        stop: Set when it shall end.
    """

    def __init__(self, settings: Settings, queue: OwnerQueue, stop: threading.Event) -> None:
        assert settings.dask_scheduler is not None
        self._address = settings.dask_scheduler
        self._settings = settings
        self._queue = queue
        self._stop = stop
        self._staging = StagingArea.of(settings)
        self._store_id = ensure_store_id(settings.store)
        self._idle_since = time.monotonic()

    def work(self) -> None:
        """Run shards until told to stop, or until there have been none for a while."""
        while not self._is_over():
            try:
                self._run()
            except ClusterLostError as error:
                _LOG.warning("no cluster", reason=str(error))
                self._stop.wait(RETRY_SECONDS)
                self._idle_since = time.monotonic()

    def _run(self) -> None:
        news: SimpleQueue[News] = SimpleQueue()
        with (
            Cluster(self._address, news) as cluster,
            Leases(self._queue) as leases,
            StepTimer(self._settings.job_text_seconds) as timer,
        ):

            def new_spec(run: str) -> TaskSpec:
                return self._spec(run, cluster.topic)

            session = Session(self._queue, leases, self._staging, cluster, news, new_spec)
            try:
                while not self._is_over():
                    timer.restart(waiting=self._queue.max_wait)
                    session.step()
                    if not session.is_idle:
                        self._idle_since = time.monotonic()
            finally:
                session.give_back()

    def _is_over(self) -> bool:
        idle = time.monotonic() - self._idle_since
        return self._stop.is_set() or idle > self._settings.job_idle_seconds

    def _spec(self, run: str, topic: str) -> TaskSpec:
        return TaskSpec(
            run=run,
            topic=topic,
            settings=settings_json(self._settings),
            store_id=self._store_id,
            lease_seconds=self._queue.lease_seconds,
            text_seconds=self._settings.job_text_seconds,
            version=own_version(),
        )


def main() -> None:
    """Run the coordinator that standard input describes."""
    config, stop = read_config()
    _allow_open_files()
    settings = config.settings
    queue = JobQueue.of(open_database(database_url(settings)), settings)
    Coordinator(settings, OwnerQueue(config.owner, queue, stop), stop).work()


def _allow_open_files() -> None:
    """Raise the limit on open files: each running shard has an in-flight log open here."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    main()
