"""The process that runs shards on a cluster: it claims them, and settles what comes of them.

What a worker of this machine does for itself is done here for each shard by a thread: the texts in
flight and the announced counts are saved, and the shard is settled. A few shards for each worker
are out at any time; all others wait in the job tables.

No task runs twice. One that begins again, because the scheduler gave it to another worker when its
own had died, is cancelled before it parses, and its shard is claimed anew. So every try counts, and
knows of the others.
"""

from __future__ import annotations

import resource
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final

from service.jobs.dask.cluster import Cluster, ClusterLostError, News
from service.jobs.dask.task import Assignment, Message
from service.jobs.database import database_url, open_database
from service.jobs.processes import read_config
from service.jobs.queue import Claims, JobQueue, LeaseLostError
from service.jobs.records import Counts, Shard
from service.jobs.staging import StagingArea, read_shard
from service.jobs.worker import InFlightLog, RunInterruptedError, StepTimer, TaskError, settling
from service.logs import get_logger
from service.settings import Settings
from syntax.errors import WorkerDiedError

RETRY_SECONDS: Final = 1.0
"""Pause between two tries to reach the scheduler."""

TICK_SECONDS: Final = 0.1
"""Pause between two claims when no shard was free, or there was no room for one."""

LOOK_SECONDS: Final = 1.0
"""Pause between two checks whether a shard's lease is kept and its worker is heard of."""

_LOG = get_logger("parsebank.jobs")


class Coordinator:
    """Runs the shards of a queue on the cluster that the settings name, until ``stop`` is set."""

    def __init__(self, settings: Settings, claims: Claims, stop: threading.Event) -> None:
        self._settings = settings
        self._claims = claims
        self._stop = stop
        self._idle_since = time.monotonic()

    def work(self) -> None:
        while not self._is_over():
            try:
                self._run()
            except ClusterLostError as error:
                _LOG.warning("no cluster", reason=str(error))
                self._stop.wait(RETRY_SECONDS)
                self._idle_since = time.monotonic()

    def _run(self) -> None:
        staging = StagingArea.of(self._settings)
        out: list[ShardThread] = []
        with (
            Cluster(self._settings) as cluster,
            self._claims as claims,
            StepTimer(self._settings.job_text_seconds) as timer,
        ):
            try:
                while not self._is_over():
                    timer.restart(waiting=self._claims.max_wait)
                    out = [thread for thread in out if thread.goes_on()]
                    if out:
                        self._idle_since = time.monotonic()
                    shard = None
                    if len(out) < cluster.room():
                        shard = claims.claim()
                    if shard is None:
                        self._stop.wait(TICK_SECONDS)
                        continue
                    out.append(ShardThread(shard, claims, staging, cluster))
                    out[-1].start()
            finally:
                for thread in out:
                    thread.give_back()
                for thread in out:
                    thread.join()

    def _is_over(self) -> bool:
        idle = time.monotonic() - self._idle_since
        return self._stop.is_set() or idle > self._settings.job_idle_seconds


class ShardThread(threading.Thread):
    """One try of a shard on the cluster, from its submission to its settlement."""

    def __init__(
        self,
        shard: Shard,
        claims: Claims,
        staging: StagingArea,
        cluster: Cluster,
    ) -> None:
        super().__init__(name=f"shard {shard.number}")
        self._shard = shard
        self._claims = claims
        self._folder = staging.folder(shard.job)
        self._cluster = cluster
        self._inbox: SimpleQueue[News] = SimpleQueue()
        self._worker: str | None = None
        self._lost: ClusterLostError | None = None

    def goes_on(self) -> bool:
        """Tell if it runs; raises `ClusterLostError` if it has ended because its task is lost."""
        if self._lost:
            raise self._lost
        return self.is_alive()

    def give_back(self) -> None:
        """Withdraw the task; the shard is free at once, and the try does not count."""
        self._inbox.put(RunInterruptedError())

    def run(self) -> None:
        with settling(self._shard, self._claims):
            try:
                self._claims.complete(self._shard, self._counts())
            except ClusterLostError as error:
                self._lost = error
                raise

    def _counts(self) -> Counts:
        shard = self._shard
        with InFlightLog(self._folder, shard.number, shard.tries) as in_flight:
            staged = read_shard(self._folder, shard.number)
            assignment = Assignment(shard, staged, in_flight.fatal_keys, in_flight.isolated_keys)
            with self._cluster.task(assignment, self._inbox) as cancel:
                try:
                    return self._serve(in_flight)
                except LeaseLostError:
                    cancel()
                    if self._worker is not None:
                        self._await_end(self._worker)
                    raise

    def _serve(self, in_flight: InFlightLog) -> Counts:
        """Act on the messages of the task; one from a second start means that the first died."""
        while True:
            message = self._next()
            if self._worker is None:
                self._worker = message.worker
            elif message.what == "begin" or message.worker != self._worker:
                raise self._died()
            match message.what:
                case "watch":
                    in_flight.watch(*message.facts["keys"])
                case "announce":
                    self._claims.save_plan(self._shard, Counts(**message.facts["plan"]))
                case "over":
                    return _outcome(message)
            if message.asks:
                self._cluster.acknowledge(message)

    def _next(self) -> Message:
        """The next message of the task; raises if there will be none."""
        silent_at = time.monotonic() + self._claims.lease_seconds
        while True:
            if self._claims.is_lost(self._shard):
                raise LeaseLostError("the job was cancelled, or its shard claimed again")
            try:
                news = self._inbox.get(timeout=LOOK_SECONDS)
            except Empty:
                if self._worker is not None and time.monotonic() > silent_at:
                    self._cluster.restart(self._worker)
                    raise self._died() from None
                continue
            if isinstance(news, WorkerDiedError):
                raise self._died()
            if isinstance(news, Exception):
                raise news
            return news

    def _await_end(self, worker: str) -> None:
        """Wait until a cancelled task is over: until then it may write.

        Its lease is no longer renewed, so the limit is half a lease; then its worker is restarted.
        """
        end = time.monotonic() + self._claims.lease_seconds / 2
        with suppress(Empty):
            while True:
                news = self._inbox.get(timeout=max(0.0, end - time.monotonic()))
                is_over = isinstance(news, Message) and news.what == "over"
                if is_over or type(news) is RunInterruptedError:  # a lost cluster is one more kind
                    return
        self._cluster.restart(worker)

    def _died(self) -> WorkerDiedError:
        place = self._worker or "a worker"
        return WorkerDiedError(
            f"{place} died, took too long for a step, or was lost on shard {self._shard.number}"
        )


def _outcome(message: Message) -> Counts:
    facts = message.facts
    if "counts" in facts:
        return Counts(**facts["counts"])
    if "error" in facts:
        error = facts["error"]
        raise TaskError(
            error["error_type"],
            f"{error['message']} (on {message.worker})",
            is_permanent=facts["permanent"],
        )
    raise RunInterruptedError


def main() -> None:
    config, stop = read_config()
    _allow_open_files()
    settings = config.settings
    queue = JobQueue.of(open_database(database_url(settings)), settings)
    Coordinator(settings, Claims(config.owner, queue, stop), stop).work()


def _allow_open_files() -> None:
    """Raise the limit on open files: each running shard has an in-flight log open here."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    main()
