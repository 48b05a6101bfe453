"""The shards that run on a cluster, for the life of its scheduler."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import structlog

from service.jobs.dask.channel import Assignment, Message, TaskSpec, What
from service.jobs.dask.cluster import Cluster, ClusterLostError, Ended, News
from service.jobs.owner_queue import RENEWAL_SECONDS, Leases, OwnerQueue
from service.jobs.queue import Failure, LeaseLostError
from service.jobs.records import Counts, Shard, error_json
from service.jobs.running import InFlightLog
from service.jobs.staging import StagingArea, read_shard
from service.jobs.worker import is_permanent, retry_delay
from syntax.errors import StoreError, WorkerDiedError

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


PER_WORKER: Final = 2
"""Shards for each worker: one runs, one waits."""

AT_LEAST: Final = 4
"""Fewest shards on the cluster: waiting tasks make an adaptive cluster grow."""

TICK_SECONDS: Final = 0.1
"""Seconds to wait for messages, and between two claims."""

_LAST_WORDS: Final = ("done", "failed", "stopped")

_LOG = structlog.get_logger("parsebank.jobs")


class Session:
    """Sends shards to one scheduler, answers their runs, and settles them.

    Args:
        queue: Where shards are claimed and settled.
        leases: Keeps those of the shards that are out.
        staging: Where their lines are.
        cluster: Where they are run.
        news: Of their tasks.
        new_spec: Makes the spec of a run from its name.
    """

    def __init__(
        self,
        queue: OwnerQueue,
        leases: Leases,
        staging: StagingArea,
        cluster: Cluster,
        news: SimpleQueue[News],
        new_spec: Callable[[str], TaskSpec],
    ) -> None:
        self._queue = queue
        self._leases = leases
        self._staging = staging
        self._cluster = cluster
        self._news = news
        self._new_spec = new_spec
        self._tasks: dict[str, RunningTask] = {}
        self._room = 0
        self._next_claim = self._next_look = 0.0
        self._handlers: Mapping[What, Callable[[RunningTask, Message], None]] = {
            "begin": self._begin,
            "watch": self._watch,
            "announce": self._announce,
            "done": self._done,
            "failed": self._failed,
            "stopped": self._stopped,
        }

    @property
    def is_idle(self) -> bool:
        """Whether no shard is out."""
        return not self._tasks

    def step(self) -> None:
        """Send what there is room for, hear the news, look after what is out.

        Raises:
            ClusterLostError: The scheduler is gone, and all tasks with it.
            JobDatabaseError: The database was away for too long.
        """
        self._cluster.check()
        if time.monotonic() >= self._next_look:
            self._look_after()
            self._next_look = time.monotonic() + min(RENEWAL_SECONDS, self._queue.lease_seconds / 4)
        if time.monotonic() >= self._next_claim:
            self._send()
        self._hear()

    def give_back(self) -> None:
        """Withdraw all tasks; their shards are free, and the try does not count."""
        for task in list(self._tasks.values()):
            self._settle(task)

    def _send(self) -> None:
        while len(self._tasks) < self._room:
            shard = self._queue.claim()
            if shard is None:
                self._next_claim = time.monotonic() + TICK_SECONDS
                return
            self._leases.keep(shard)
            task = RunningTask(shard)
            self._tasks[task.run] = task
            task.future = self._cluster.submit(self._new_spec(task.run))

    def _hear(self) -> None:
        """Handle the news that are there, or the first that comes."""
        try:
            news = self._news.get(timeout=TICK_SECONDS)
            while True:
                self._handle(news)
                news = self._news.get_nowait()
        except Empty:
            return

    def _handle(self, news: News) -> None:
        task = self._tasks.get(news.run)
        if isinstance(news, Ended):
            if task is not None:
                self._ended(task, news)
        elif task is None or not self._is_current(task, news):
            if news.what not in _LAST_WORDS:
                self._cluster.answer(news.worker, news.run, "stop")
        else:
            task.heard_from(news.worker)
            if news.what in self._handlers:
                self._handlers[news.what](task, news)

    def _is_current(self, task: RunningTask, message: Message) -> bool:
        """Whether a message is of a run's first task; if that died, the scheduler began another."""
        again = message.what == "begin" and task.has_begun
        if again or task.worker not in (None, message.worker):
            self._died(task)
            return False
        return True

    def _begin(self, task: RunningTask, message: Message) -> None:
        shard = task.shard
        try:
            staged = read_shard(self._staging.folder(shard.job), shard.number)
        except StoreError as error:
            self._cluster.answer(message.worker, message.run, "stop")
            self._settle_failed(task, error_json(error), permanent=is_permanent(error))
            return
        in_flight = task.begin(self._staging)
        assignment = Assignment(shard, staged, in_flight.fatal_keys, in_flight.isolated_keys)
        self._cluster.answer(message.worker, message.run, "stop" if task.is_ending else assignment)

    def _watch(self, task: RunningTask, message: Message) -> None:
        task.watch(*message.facts["keys"])
        if message.facts["wait"]:
            self._cluster.answer(message.worker, message.run, "go")

    def _announce(self, task: RunningTask, message: Message) -> None:
        try:
            if not task.is_ending:
                self._queue.save_plan(task.shard, Counts.from_json(message.facts["plan"]))
                self._cluster.answer(message.worker, message.run, "go")
                return
        except LeaseLostError:
            task.end()
        self._cluster.answer(message.worker, message.run, "stop")

    def _done(self, task: RunningTask, message: Message) -> None:
        shard = task.shard
        try:
            self._queue.complete(shard, Counts.from_json(message.facts["counts"]))
        except LeaseLostError as error:
            _LOG.info("shard left", job=shard.job, shard=shard.number, reason=error.message)
            self._settle(task)
        else:
            self._forget(task)

    def _failed(self, task: RunningTask, message: Message) -> None:
        error = message.facts["error"]
        error = {**error, "message": f"{error['message']} (on {message.worker})"}
        self._settle_failed(task, error, permanent=message.facts["permanent"])

    def _stopped(self, task: RunningTask, _: Message) -> None:
        self._settle(task)

    def _ended(self, task: RunningTask, ended: Ended) -> None:
        """The scheduler is done with a task of which nothing was heard to the end."""
        if ended.status in ("cancelled", "lost"):
            raise ClusterLostError("the scheduler was started anew, or has lost the tasks")
        if ended.error is None or type(ended.error).__name__ == "KilledWorker":
            self._died(task)
        else:
            error = {"error_type": "worker", "message": _explained(ended.error)}
            self._settle_failed(task, error, permanent=False)

    def _died(self, task: RunningTask) -> None:
        shard, place = task.shard, task.worker or "a worker"
        _LOG.warning("worker died", worker=place, job=shard.job, shard=shard.number)
        reason = f"{place} died, took too long for a step, or was lost on shard {shard.number}"
        self._settle(task, WorkerDiedError(reason))

    def _settle_failed(
        self, task: RunningTask, error: Mapping[str, Any], *, permanent: bool
    ) -> None:
        shard = task.shard
        log = _LOG.bind(job=shard.job, shard=shard.number, tries=shard.tries)
        log.error("shard failed" if permanent else "shard will be tried again", **error)
        if permanent:
            self._queue.fail(shard, error)
            self._forget(task)
        else:
            self._settle(task, error, retry_delay(shard))

    def _settle(self, task: RunningTask, error: Failure | None = None, delay: float = 0.0) -> None:
        self._queue.release(task.shard, error, delay)
        self._forget(task)

    def _forget(self, task: RunningTask) -> None:
        self._leases.drop(task.shard)
        del self._tasks[task.run]
        task.close()
        self._next_claim = 0.0

    def _look_after(self) -> None:
        """Give up the silent, and end those whose job was cancelled."""
        for task in list(self._tasks.values()):
            if task.is_overdue(self._queue.lease_seconds):
                self._give_up(task)
        for task in list(self._tasks.values()):
            if not task.is_ending and self._leases.is_lost(task.shard):
                self._end(task)
        self._room = max(AT_LEAST, PER_WORKER * self._cluster.workers())

    def _give_up(self, task: RunningTask) -> None:
        assert task.worker is not None
        self._cluster.restart(task.worker)
        if task.is_ending:
            self._settle(task)
        else:
            self._died(task)

    def _end(self, task: RunningTask) -> None:
        if task.worker is None or not task.has_begun:
            self._settle(task)  # if it asks for its lines later, it is told to stop
        else:
            task.end()
            self._leases.drop(task.shard)
            self._cluster.answer(task.worker, task.run, "stop")


def _explained(error: BaseException) -> str:
    hint = "; is parsebank installed on every worker?" if isinstance(error, ImportError) else ""
    return f"the task could not be run ({type(error).__name__}: {error}){hint}"
