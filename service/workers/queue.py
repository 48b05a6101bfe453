"""Texts that wait for one model's workers, in requests that take turns."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from service.parsers import ParseInput
from service.parsers.base import Outcome
from syntax.errors import DeadlineError, OverloadedError, ParsebankError, SpecError

_LONGEST_RETRY_AFTER: Final = 60
_MEMORY: Final = 0.95
"""Share of what is known about the workers' speed that survives one more batch."""


@dataclass(eq=False, slots=True)
class Job:
    """One text on its way through the workers.

    Attributes:
        item: The text.
        words: What it counts for in budgets, at least 1.
        position: Its place in the request.
        request: What it came with.
        outcome: What it came to, once that is known.
        deaths: Workers that died while they had it in hand.
        alone: It must not share a batch: a worker died, or took too long, over a batch it was in.
    """

    item: ParseInput
    words: int
    position: int
    request: Request
    outcome: Outcome | None = None
    deaths: int = 0
    alone: bool = False

    @property
    def is_open(self) -> bool:
        """Whether its outcome is still unknown, and somebody waits for it."""
        return self.outcome is None and not self.request.is_closed

    def settle(self, outcome: Outcome) -> None:
        """Answer, unless that has happened or nobody waits any more."""
        if self.is_open:
            self.outcome = outcome
            self.request.answers.put_nowait((self.position, outcome))


class Request:
    """Texts that came together.

    Args:
        items: The texts.
        arrived: When they came, in the event loop's time.
        deadline: When their answers are no longer wanted.

    Attributes:
        jobs: One per text, in order.
        answers: Position and outcome of each, as they are settled.
        waiting: Those that no worker has in hand; kept by the `JobQueue`.
        words: In ``waiting``.
        credit: Words that it may still take in its turn; negative after a long text.
        is_closed: Nobody waits for the answers any more.
    """

    def __init__(self, items: Sequence[ParseInput], arrived: float, deadline: float) -> None:
        self.arrived = arrived
        self.deadline = deadline
        self.jobs = [Job(item, max(item.words, 1), n, self) for n, item in enumerate(items)]
        self.answers: asyncio.Queue[tuple[int, Outcome]] = asyncio.Queue()
        self.waiting = deque(self.jobs)
        self.words = sum(job.words for job in self.jobs)
        self.credit = 0
        self.is_closed = False

    def settle(self, error: ParsebankError) -> None:
        """Answer whatever is still open with an error."""
        for job in self.jobs:
            job.settle(error)

    def too_late(self) -> DeadlineError:
        """What becomes of the texts that are open at the deadline."""
        seconds = max(0.0, round(self.deadline - self.arrived, 1))
        return DeadlineError(
            f"the text was not parsed within {seconds:g} s; send fewer or shorter texts at once, "
            "or allow more time (deadline_seconds, at most request_deadline_seconds)",
            seconds=seconds,
        )


class JobQueue:
    """A queue bounded by words, in which requests take turns.

    A request may take ``quantum`` words before the next has its turn. A text is never cut, so a
    turn may exceed that, and the request waits for as many rounds as its debt is worth (deficit
    round robin). Between the arrival of a request and its first text, every other request hence
    gives at most ``quantum`` words and one text: a thousand texts do not hold up a single one.
    Every step costs the same however much waits, but for one step per ``quantum`` words of debt.

    Args:
        capacity: Words that may wait.
        workers: How many take from it.
        quantum: Words that a request may take before the next has its turn.

    Attributes:
        words: That wait.
        texts: That wait.
    """

    def __init__(self, capacity: int, workers: int, quantum: int) -> None:
        self.words = 0
        self.texts = 0
        self._capacity = capacity
        self._workers = workers
        self._quantum = quantum
        self._turns: OrderedDict[Request, None] = OrderedDict()
        self._filled = asyncio.Event()
        self._known_words = 0.0
        self._known_seconds = 0.0

    def __len__(self) -> int:
        return self.texts

    def put(self, request: Request, first: bool = False) -> None:
        """Queue all texts of a request, or none.

        Args:
            request: A new request.
            first: Give it the next turn.

        Raises:
            OverloadedError: There is no room for them now.
            SpecError: There will never be room for them.
        """
        self._check_room(request.words)
        request.credit = self._quantum
        if request.waiting:
            self._line_up(request, first)
            self._grow(request.words, len(request.waiting))

    def put_back(self, jobs: Iterable[Job]) -> None:
        """Queue jobs again, ahead of the others of their request, in their order."""
        for job in reversed(list(jobs)):
            request = job.request
            request.waiting.appendleft(job)
            request.words += job.words
            request.credit += job.words
            self._line_up(request, first=True)
            self._grow(job.words, 1)

    def expire(self, request: Request) -> None:
        """Answer whatever is open in a request that its deadline has passed."""
        request.settle(request.too_late())
        self._take_out(request)

    def withdraw(self, request: Request) -> None:
        """Forget a request: what waits is not parsed, what is being parsed is not answered."""
        request.is_closed = True
        self._take_out(request)

    async def take(self, budget: int, wait: float = 0.0) -> list[Job]:
        """Wait for work, and take a batch of about ``budget`` words.

        A batch is at most the share of one worker in what waits, so that ten short texts are
        spread over the workers too.

        Args:
            budget: Words of a full batch.
            wait: Seconds to wait for a full batch once there is a text.
        """
        while True:
            await self._fill(1)
            if wait:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._fill(budget)
            if batch := self._batch(budget):
                return batch

    def drain(self) -> list[Job]:
        """Take everything."""
        requests = list(self._turns)
        jobs = [job for request in requests for job in request.waiting]
        for request in requests:
            self._take_out(request)
        return jobs

    def learn(self, words: int, seconds: float) -> None:
        """Note how long a worker took over so many words."""
        self._known_words = _MEMORY * self._known_words + words
        self._known_seconds = _MEMORY * self._known_seconds + seconds

    def expected_seconds(self, words: float) -> float:
        """How long one worker will take over so many words; 0 before any was seen at work."""
        return words * self._known_seconds / max(self._known_words, 1.0)

    def _line_up(self, request: Request, first: bool) -> None:
        if request not in self._turns:
            self._turns[request] = None
            if first:
                self._turns.move_to_end(request, last=False)

    def _grow(self, words: int, texts: int) -> None:
        self.words += words
        self.texts += texts
        self._filled.set()

    def _take_out(self, request: Request) -> None:
        if request in self._turns:
            del self._turns[request]
            self.words -= request.words
            self.texts -= len(request.waiting)
            request.waiting.clear()
            request.words = 0

    async def _fill(self, words: int) -> None:
        """Wait until so many words wait."""
        while self.words < words:
            self._filled.clear()
            await self._filled.wait()

    def _batch(self, budget: int) -> list[Job]:
        room = min(budget, self.words / self._workers)
        batch: list[Job] = []
        while self._turns and room > 0:
            request = self._next_in_turn()
            if batch and (batch[0].alone or request.waiting[0].alone):
                break
            batch.append(self._pop(request))
            room -= batch[-1].words
        return batch

    def _next_in_turn(self) -> Request:
        while (request := next(iter(self._turns))).credit <= 0:
            request.credit += self._quantum
            self._turns.move_to_end(request)
        return request

    def _pop(self, request: Request) -> Job:
        job = request.waiting.popleft()
        request.words -= job.words
        request.credit -= job.words
        self.words -= job.words
        self.texts -= 1
        if not request.waiting:
            del self._turns[request]
        return job

    def _check_room(self, words: int) -> None:
        if words > self._capacity:
            raise SpecError(
                f"the request has about {words} words to parse; at most {self._capacity} can "
                "wait for a parser. Send fewer texts at once, or raise max_queued_words",
                words=words,
                limit=self._capacity,
            )
        if self.words + words > self._capacity:
            raise self._overloaded(words)

    def _overloaded(self, words: int) -> OverloadedError:
        waiting = self.expected_seconds(self.words / self._workers)
        retry_after = min(max(math.ceil(waiting), 1), _LONGEST_RETRY_AFTER)
        return OverloadedError(
            f"{self.words} words wait for this parser, and {words} more would exceed "
            f"{self._capacity}; try again in {retry_after} s, or send fewer texts at once",
            retry_after=retry_after,
            queued=self.words,
            limit=self._capacity,
        )
