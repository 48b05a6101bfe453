"""Texts that wait for one model's workers."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from service.parsers import ParseInput
from service.parsers.base import Outcome
from syntax.errors import OverloadedError

_LONGEST_RETRY_AFTER: Final = 60


@dataclass(eq=False)
class Job:
    """One text on its way through the workers.

    Attributes:
        item: The text.
        deadline: When its answer is no longer wanted, in the event loop's time.
        answer: Its outcome, once there is one.
        deaths: Workers that died while they had it in hand.
    """

    item: ParseInput
    deadline: float
    answer: asyncio.Future[Outcome] = field(repr=False)
    deaths: int = 0

    def settle(self, outcome: Outcome) -> None:
        """Answer, unless that has happened (or nobody waits any more)."""
        if not self.answer.done():
            self.answer.set_result(outcome)


class JobQueue:
    """A first-in first-out queue, bounded by characters.

    Args:
        capacity: Characters that may wait.
        workers: How many take from it.
    """

    def __init__(self, capacity: int, workers: int) -> None:
        self._capacity = capacity
        self._workers = workers
        self._jobs: deque[Job] = deque()
        self._filled = asyncio.Event()
        self._seconds_per_char = 0.0
        self.chars = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def put(self, jobs: Iterable[Job]) -> None:
        """Queue all jobs, or none.

        Raises:
            OverloadedError: There is no room for them.
        """
        jobs = list(jobs)
        chars = sum(job.item.words for job in jobs)
        if self.chars + chars > self._capacity:
            raise self._overloaded(chars)
        self._jobs.extend(jobs)
        self._grow(chars)

    def put_back(self, jobs: Iterable[Job]) -> None:
        """Queue jobs again, ahead of the others, in their order."""
        for job in reversed(list(jobs)):
            self._jobs.appendleft(job)
            self._grow(job.item.words)

    async def take(self, budget: int) -> list[Job]:
        """Wait for work, and take a batch of about ``budget`` characters.

        A batch is at most the share of one worker in what waits, so that ten short texts are
        spread over the workers too.
        """
        while not (batch := self._batch(budget)):
            self._filled.clear()
            await self._filled.wait()
        return batch

    def drain(self) -> list[Job]:
        """Take everything."""
        jobs = list(self._jobs)
        self._jobs.clear()
        self.chars = 0
        return jobs

    def learn(self, chars: int, seconds: float) -> None:
        """Note how long a worker took, for the advice in ``Retry-After``."""
        observed = seconds / max(chars, 1)
        self._seconds_per_char += 0.1 * (observed - self._seconds_per_char)

    def _grow(self, chars: int) -> None:
        self.chars += chars
        self._filled.set()

    def _batch(self, budget: int) -> list[Job]:
        room: float = min(budget, self.chars / self._workers)
        batch: list[Job] = []
        while self._jobs and (room > 0 or not batch):
            job = self._jobs.popleft()
            self.chars -= job.item.words
            if not job.answer.done():
                batch.append(job)
                room -= job.item.words
        return batch

    def _overloaded(self, chars: int) -> OverloadedError:
        waiting = self.chars * self._seconds_per_char / self._workers
        retry_after = min(max(math.ceil(waiting), 1), _LONGEST_RETRY_AFTER)
        return OverloadedError(
            f"{self.chars} characters wait for this parser, and {chars} more would exceed "
            f"{self._capacity}; try again in {retry_after} s, or send fewer texts at once",
            retry_after=retry_after,
            queued=self.chars,
            limit=self._capacity,
        )
