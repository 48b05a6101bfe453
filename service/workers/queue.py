"""The queue of one model: texts that wait for its workers, in requests that take turns."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from service.parsers import ParseInput
from service.parsers.base import Outcome
from syntax.errors import DeadlineError, OverloadedError, ParsebankError, SpecError

_LONGEST_RETRY_AFTER: Final = 60
_MEMORY: Final = 0.95
"""Weight of the known speed of the workers after one more batch (exponential decay)."""


@dataclass(eq=False, slots=True)
class PendingText:
    """One text that waits for its parse.

    Attributes:
        words: Words for budgets, at least 1.
        position: Index in the request.
        deaths: Workers that died while parsing it.
        alone: True if it needs a batch of its own, because a worker died or took too long on a
            batch that held it.
        began: When a worker began to parse it, in the event loop's time.
    """

    item: ParseInput
    words: int
    position: int
    request: PendingRequest
    outcome: Outcome | None = None
    deaths: int = 0
    alone: bool = False
    began: float = 0.0

    @property
    def is_open(self) -> bool:
        return self.outcome is None and not self.request.is_closed

    def settle(self, outcome: Outcome) -> None:
        if self.is_open:
            self.outcome = outcome
            self.request.answers.put_nowait((self.position, outcome))


class PendingRequest:
    """The texts of one request; times are in the event loop's time.

    Args:
        words: Estimated number of words of each text.
        deadline: Time at which open texts fail.

    Attributes:
        answers: Position and outcome of each text, in the order in which they are settled.
        waiting: Texts that no worker is parsing; maintained by the `FairQueue`.
        words: Number of words in ``waiting``.
        credit: Words that the request may still take in its turn; negative after a long text.
        is_closed: True if the caller has stopped waiting.
    """

    def __init__(
        self, items: Sequence[ParseInput], words: Sequence[int], arrived: float, deadline: float
    ) -> None:
        self.arrived = arrived
        self.deadline = deadline
        self.texts = [
            PendingText(item, max(count, 1), n, self)
            for n, (item, count) in enumerate(zip(items, words, strict=True))
        ]
        self.answers: asyncio.Queue[tuple[int, Outcome]] = asyncio.Queue()
        self.waiting = deque(self.texts)
        self.words = sum(text.words for text in self.texts)
        self.credit = 0
        self.is_closed = False

    def refuse(self, refusal: Callable[[ParseInput], ParsebankError | None]) -> None:
        for text in self.texts:
            if (error := refusal(text.item)) is not None:
                text.settle(error)
        self.waiting = deque(text for text in self.texts if text.is_open)
        self.words = sum(text.words for text in self.waiting)

    def settle(self, error: ParsebankError) -> None:
        for text in self.texts:
            text.settle(error)

    def too_late(self) -> DeadlineError:
        seconds = max(0.0, round(self.deadline - self.arrived, 1))
        return DeadlineError(
            f"the text was not parsed within {seconds:g} s; send fewer or shorter texts at once, "
            "or allow more time (deadline_seconds, at most request_deadline_seconds)",
            seconds=seconds,
        )


class FairQueue:
    """A queue with a limit on words, in which requests take turns (deficit round robin).

    A request takes ``quantum`` words in its turn. A text is never split, so a turn may exceed the
    quantum; the request then skips turns until its credit is positive again. Before the first text
    of a new request is served, each other request gets at most ``quantum`` words and one text, so
    a request of a thousand texts does not delay a request of one. Operations take constant time,
    except one step per ``quantum`` words of debt.

    Attributes:
        words, texts: Number of words and texts that wait.
    """

    def __init__(self, capacity: int, workers: int, quantum: int) -> None:
        self.words = 0
        self.texts = 0
        self._capacity = capacity
        self._workers = workers
        self._quantum = quantum
        self._turns: OrderedDict[PendingRequest, None] = OrderedDict()
        self._filled = asyncio.Event()
        self._known_words = 0.0
        self._known_seconds = 0.0

    def __len__(self) -> int:
        return self.texts

    def put(self, request: PendingRequest, first: bool = False) -> None:
        """Queue all texts of a request, or none; ``first`` gives it the next turn.

        Raises:
            OverloadedError: The queue is too full now.
            SpecError: The request exceeds the capacity.
        """
        self._check_capacity(request.words)
        request.credit = self._quantum
        if request.waiting:
            self._enqueue(request, first)
            self._grow(request.words, len(request.waiting))

    def put_back(self, texts: Iterable[PendingText]) -> None:
        """Queue texts again, in front of the others of their request."""
        for text in reversed(list(texts)):
            request = text.request
            request.waiting.appendleft(text)
            request.words += text.words
            request.credit += text.words
            self._enqueue(request, first=True)
            self._grow(text.words, 1)

    def expire(self, request: PendingRequest) -> None:
        request.settle(request.too_late())
        self._take_out(request)

    def withdraw(self, request: PendingRequest) -> None:
        """Drop a request: its waiting texts are not parsed, later outcomes are ignored."""
        request.is_closed = True
        self._take_out(request)
        # They refer to each other: garbage that only a pass over all objects would find, which
        # keeps every request waiting.
        request.texts.clear()

    async def take(self, budget: int, wait: float = 0.0) -> list[PendingText]:
        """Take a batch of about ``budget`` words, after up to ``wait`` seconds for a full one.

        A batch is at most one worker's share of the waiting words, so that a few short texts are
        spread over the workers.
        """
        while True:
            await self._fill(1)
            if wait:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._fill(budget)
            if batch := self._batch(budget):
                return batch

    def drain(self) -> list[PendingText]:
        requests = list(self._turns)
        texts = [text for request in requests for text in request.waiting]
        for request in requests:
            self._take_out(request)
        return texts

    def learn(self, words: int, seconds: float) -> None:
        self._known_words = _MEMORY * self._known_words + words
        self._known_seconds = _MEMORY * self._known_seconds + seconds

    def expected_seconds(self, words: float) -> float:
        """Expected seconds of one worker for some words; 0 before the first measurement."""
        return words * self._known_seconds / max(self._known_words, 1.0)

    def _enqueue(self, request: PendingRequest, first: bool) -> None:
        if request not in self._turns:
            self._turns[request] = None
            if first:
                self._turns.move_to_end(request, last=False)

    def _grow(self, words: int, texts: int) -> None:
        self.words += words
        self.texts += texts
        self._filled.set()

    def _take_out(self, request: PendingRequest) -> None:
        if request in self._turns:
            del self._turns[request]
            self.words -= request.words
            self.texts -= len(request.waiting)
            request.waiting.clear()
            request.words = 0

    async def _fill(self, words: int) -> None:
        while self.words < words:
            self._filled.clear()
            await self._filled.wait()

    def _batch(self, budget: int) -> list[PendingText]:
        room = min(budget, self.words / self._workers)
        batch: list[PendingText] = []
        while self._turns and room > 0:
            request = self._next_in_turn()
            if batch and (batch[0].alone or request.waiting[0].alone):
                break
            batch.append(self._pop(request))
            room -= batch[-1].words
        return batch

    def _next_in_turn(self) -> PendingRequest:
        while (request := next(iter(self._turns))).credit <= 0:
            request.credit += self._quantum
            self._turns.move_to_end(request)
        return request

    def _pop(self, request: PendingRequest) -> PendingText:
        text = request.waiting.popleft()
        request.words -= text.words
        request.credit -= text.words
        self.words -= text.words
        self.texts -= 1
        if not request.waiting:
            del self._turns[request]
        return text

    def _check_capacity(self, words: int) -> None:
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
