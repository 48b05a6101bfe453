"""The shards that are out on a cluster, as long as its scheduler lives."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any, Final

import structlog

from service.jobs.desk import Desk
from service.jobs.engines.dask.cluster import Cluster, ClusterLostError, Ended, News
from service.jobs.engines.dask.flight import Flight
from service.jobs.engines.dask.messages import Message, Order, Ticket, What
from service.jobs.leases import RENEWAL_SECONDS, Leases
from service.jobs.queue import Failure, LeaseLostError
from service.jobs.records import Counts, error_json
from service.jobs.staging import StagingArea, read_shard
from service.jobs.worker import is_permanent, retry_delay
from syntax.errors import StoreError, WorkerDiedError

PER_WORKER: Final = 2
"""Shards that are out for each worker: one in hand, one to go on with."""

AT_LEAST: Final = 4
"""Shards that are out when there are few workers or none: what waits makes a cluster grow."""

TICK_SECONDS: Final = 0.1
"""How long news are waited for, and the time between two looks for free shards."""

_LAST_WORDS: Final = ("done", "failed", "stopped")

_LOG = structlog.get_logger("parsebank.jobs")


class Session:
    """Sends shards to one scheduler, answers their runs, and settles them.

    Args:
        desk: Where shards are claimed and settled.
        leases: Keeps those of the shards that are out.
        staging: Where their lines are.
        cluster: Where they are run.
        news: Of their tasks.
        new_ticket: Gives the ticket of a run by its name.
    """

    def __init__(
        self,
        desk: Desk,
        leases: Leases,
        staging: StagingArea,
        cluster: Cluster,
        news: SimpleQueue[News],
        new_ticket: Callable[[str], Ticket],
    ) -> None:
        self._desk = desk
        self._leases = leases
        self._staging = staging
        self._cluster = cluster
        self._news = news
        self._new_ticket = new_ticket
        self._flights: dict[str, Flight] = {}
        self._room = 0
        self._next_claim = self._next_look = 0.0
        self._handlers: Mapping[What, Callable[[Flight, Message], None]] = {
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
        return not self._flights

    def step(self) -> None:
        """Send what there is room for, hear the news, look after what is out.

        Raises:
            ClusterLostError: The scheduler is gone, and all tasks with it.
            JobDatabaseError: The database was away for too long.
        """
        self._cluster.check()
        if time.monotonic() >= self._next_look:
            self._look_after()
            self._next_look = time.monotonic() + min(RENEWAL_SECONDS, self._desk.lease_seconds / 4)
        if time.monotonic() >= self._next_claim:
            self._send()
        self._hear()

    def give_back(self) -> None:
        """Withdraw all tasks; their shards are free, and the try does not count."""
        for flight in list(self._flights.values()):
            self._settle(flight)

    def _send(self) -> None:
        while len(self._flights) < self._room:
            shard = self._desk.claim()
            if shard is None:
                self._next_claim = time.monotonic() + TICK_SECONDS
                return
            self._leases.keep(shard)
            flight = Flight(shard)
            self._flights[flight.run] = flight
            flight.future = self._cluster.submit(self._new_ticket(flight.run))

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
        flight = self._flights.get(news.run)
        if isinstance(news, Ended):
            if flight is not None:
                self._ended(flight, news)
        elif flight is None or not self._is_current(flight, news):
            if news.what not in _LAST_WORDS:
                self._cluster.answer(news.worker, news.run, "stop")
        else:
            flight.heard_from(news.worker)
            if news.what in self._handlers:
                self._handlers[news.what](flight, news)

    def _is_current(self, flight: Flight, message: Message) -> bool:
        """Whether a message is of a run's first task; if that died, the scheduler began another."""
        again = message.what == "begin" and flight.has_begun
        if again or flight.worker not in (None, message.worker):
            self._died(flight)
            return False
        return True

    def _begin(self, flight: Flight, message: Message) -> None:
        shard = flight.shard
        try:
            staged = read_shard(self._staging.folder(shard.job), shard.number)
        except StoreError as error:
            self._cluster.answer(message.worker, message.run, "stop")
            self._settle_failed(flight, error_json(error), permanent=is_permanent(error))
            return
        crumbs = flight.begin(self._staging)
        order = Order(shard, staged, crumbs.suspects, crumbs.doubtful)
        self._cluster.answer(message.worker, message.run, "stop" if flight.is_ending else order)

    def _watch(self, flight: Flight, message: Message) -> None:
        flight.watch(*message.facts["keys"])
        if message.facts["wait"]:
            self._cluster.answer(message.worker, message.run, "go")

    def _announce(self, flight: Flight, message: Message) -> None:
        try:
            if not flight.is_ending:
                self._desk.save_plan(flight.shard, Counts.from_json(message.facts["plan"]))
                self._cluster.answer(message.worker, message.run, "go")
                return
        except LeaseLostError:
            flight.end()
        self._cluster.answer(message.worker, message.run, "stop")

    def _done(self, flight: Flight, message: Message) -> None:
        shard = flight.shard
        try:
            self._desk.complete(shard, Counts.from_json(message.facts["counts"]))
        except LeaseLostError as error:
            _LOG.info("shard left", job=shard.job, shard=shard.number, reason=error.message)
            self._settle(flight)
        else:
            self._forget(flight)

    def _failed(self, flight: Flight, message: Message) -> None:
        error = message.facts["error"]
        error = {**error, "message": f"{error['message']} (on {message.worker})"}
        self._settle_failed(flight, error, permanent=message.facts["permanent"])

    def _stopped(self, flight: Flight, _: Message) -> None:
        self._settle(flight)

    def _ended(self, flight: Flight, ended: Ended) -> None:
        """The scheduler is done with a task of which nothing was heard to the end."""
        if ended.status in ("cancelled", "lost"):
            raise ClusterLostError("the scheduler was started anew, or has lost the tasks")
        if ended.error is None or type(ended.error).__name__ == "KilledWorker":
            self._died(flight)
        else:
            error = {"error_type": "worker", "message": _explained(ended.error)}
            self._settle_failed(flight, error, permanent=False)

    def _died(self, flight: Flight) -> None:
        shard, place = flight.shard, flight.worker or "a worker"
        _LOG.warning("worker died", worker=place, job=shard.job, shard=shard.number)
        reason = f"{place} died, took too long for a step, or was lost on shard {shard.number}"
        self._settle(flight, WorkerDiedError(reason))

    def _settle_failed(self, flight: Flight, error: Mapping[str, Any], *, permanent: bool) -> None:
        shard = flight.shard
        log = _LOG.bind(job=shard.job, shard=shard.number, tries=shard.tries)
        log.error("shard failed" if permanent else "shard will be tried again", **error)
        if permanent:
            self._desk.fail(shard, error)
            self._forget(flight)
        else:
            self._settle(flight, error, retry_delay(shard))

    def _settle(self, flight: Flight, error: Failure | None = None, delay: float = 0.0) -> None:
        self._desk.release(flight.shard, error, delay)
        self._forget(flight)

    def _forget(self, flight: Flight) -> None:
        self._leases.drop(flight.shard)
        del self._flights[flight.run]
        flight.close()
        self._next_claim = 0.0

    def _look_after(self) -> None:
        """Give up the silent, and end those whose job was cancelled."""
        for flight in list(self._flights.values()):
            if flight.is_overdue(self._desk.lease_seconds):
                self._give_up(flight)
        for flight in list(self._flights.values()):
            if not flight.is_ending and self._leases.is_lost(flight.shard):
                self._end(flight)
        self._room = max(AT_LEAST, PER_WORKER * self._cluster.workers())

    def _give_up(self, flight: Flight) -> None:
        assert flight.worker is not None
        self._cluster.restart(flight.worker)
        if flight.is_ending:
            self._settle(flight)
        else:
            self._died(flight)

    def _end(self, flight: Flight) -> None:
        if flight.worker is None or not flight.has_begun:
            self._settle(flight)  # if it ever asks for its lines, it is told to stop
        else:
            flight.end()
            self._leases.drop(flight.shard)
            self._cluster.answer(flight.worker, flight.run, "stop")


def _explained(error: BaseException) -> str:
    hint = "; is parsebank installed on every worker?" if isinstance(error, ImportError) else ""
    return f"the task could not be run ({type(error).__name__}: {error}){hint}"
