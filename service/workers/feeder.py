"""One batch in one worker's hands: answers, deadlines, deaths, and who is to blame."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from service.parsers.base import Outcome
from service.timing import Stages
from service.workers.process import Worker
from service.workers.queue import Job, JobQueue
from service.workers.stats import PoolStats, Reason
from syntax.errors import WorkerDiedError

_DEATHS_ALLOWED: Final = 1
_PATIENCE_SECONDS: Final = 0.1
_PATIENCE_FACTOR: Final = 2.0


class Feeder:
    """Hands batches to workers and sees to it that every text is settled or waits again.

    A parser that works text by text answers text by text: when its worker dies or is too late,
    the first unanswered text is to blame, and those behind it wait again. A bulk parser answers
    when it is done with all of them, so nobody knows which one it was at. Each unanswered text is
    tried again alone, so that only the culprit fails.

    A worker is ended at the deadline of the text to blame (of a batch of a bulk parser: the
    earliest), but not before it has had the time that the work may take. Under load every batch
    holds a text whose time is nearly up, and ending a healthy worker over each would cost the
    others theirs. The text itself is answered at its deadline all the same
    (`WorkerPool.stream`).

    Args:
        queue: Where texts wait again.
        stats: Where they are counted.
        stages: Where their wait in the queue and the time of their parse are noted.
        bulk: Whether the parser answers a batch as a whole.
    """

    def __init__(self, queue: JobQueue, stats: PoolStats, stages: Stages, bulk: bool) -> None:
        self._queue = queue
        self._stats = stats
        self._stages = stages
        self._bulk = bulk

    async def feed(self, worker: Worker, batch: list[Job]) -> Reason | None:
        """Have a worker parse a batch; returns why the worker is gone, if it is."""
        pending = deque(batch)
        started = _now()
        for job in batch:
            self._stages.observe("queue", started - job.request.arrived)
        try:
            worker.send([job.item for job in batch])
            await (self._await_all if self._bulk else self._await_each)(worker, pending)
        except TimeoutError:
            worker.kill()
            self._pass_over(pending)
            return "deadline"
        except EOFError:
            worker.kill()
            self._blame(pending)
            return "died"
        finally:
            self._queue.put_back(job for job in pending if job.is_open)
        self._stats.batch_words.observe(sum(job.words for job in batch))
        self._stats.batch_seconds.observe(_now() - started)
        return None

    async def _await_each(self, worker: Worker, pending: deque[Job]) -> None:
        """One answer after the other, each with its own deadline."""
        while pending:
            started = _now()
            async with asyncio.timeout_at(self._patience([pending[0]])):
                outcome = await worker.receive()
            self._note([pending[0]], _now() - started)
            self._settle(pending, outcome)

    async def _await_all(self, worker: Worker, pending: deque[Job]) -> None:
        """All answers, which come together."""
        jobs = list(pending)
        started = _now()
        async with asyncio.timeout_at(self._patience(jobs)):
            while pending:
                self._settle(pending, await worker.receive())
        self._note(jobs, _now() - started)

    def _note(self, jobs: list[Job], seconds: float) -> None:
        self._queue.learn(sum(job.words for job in jobs), seconds)
        for _ in jobs:
            self._stages.observe("parse", seconds / len(jobs))

    def _patience(self, jobs: list[Job]) -> float:
        """When to give up on what a worker is beginning now."""
        expected = self._queue.expected_seconds(sum(job.words for job in jobs))
        earliest = min(job.request.deadline for job in jobs)
        return max(earliest, _now() + _PATIENCE_SECONDS + _PATIENCE_FACTOR * expected)

    def _settle(self, pending: deque[Job], outcome: Outcome) -> None:
        pending.popleft().settle(outcome)
        self._stats.texts += 1

    def _pass_over(self, pending: deque[Job]) -> None:
        """The worker was too late: answer what is past its deadline."""
        if self._is_unclear(pending):
            _separate(pending)
        for job in pending:
            if job.request.deadline <= _now():
                job.settle(job.request.too_late())

    def _blame(self, pending: deque[Job]) -> None:
        """The worker died: note with which text in hand; a second death ends the matter."""
        if self._is_unclear(pending):
            _separate(pending)
            return
        job = pending[0]
        job.deaths += 1
        if job.deaths > _DEATHS_ALLOWED:
            job.settle(
                WorkerDiedError(
                    f"{job.deaths} parser processes died on this text; the service is well, but "
                    "the model or the machine's memory may not be",
                    deaths=job.deaths,
                )
            )

    def _is_unclear(self, pending: deque[Job]) -> bool:
        return self._bulk and len(pending) > 1


def _separate(jobs: deque[Job]) -> None:
    for job in jobs:
        job.alone = True


def _now() -> float:
    return asyncio.get_running_loop().time()
