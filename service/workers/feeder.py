"""Feeds batches to workers: outcomes, deadlines, deaths, and which text caused them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from service.parsers import ParseInput
from service.parsers.base import Outcome
from service.timing import Stages
from service.workers.process import ParserProcess
from service.workers.queue import FairQueue, PendingText
from service.workers.stats import PoolStats, Reason
from syntax.errors import ParsebankError, WorkerDiedError

_DEATHS_ALLOWED: Final = 1
_AHEAD_SECONDS: Final = 0.05
"""Time before its deadline at which a text in work is given up, to be answered with the reason."""

_GRACE_SECONDS: Final = 0.1
_GRACE_FACTOR: Final = 2.0


class Feeder:
    """Sends batches to workers; every text is settled or queued again.

    Most parsers answer text by text. When such a worker dies or exceeds a deadline, the first
    unanswered text is the cause, and the texts after it are queued again. A bulk parser answers a
    batch as a whole, so each unanswered text is tried again alone, and only the one that causes the
    failure fails.

    A worker is killed at the deadline of the text that it parses (bulk parser: the earliest of the
    batch). Under load every batch holds a text close to its deadline, and killing a healthy worker
    for each would delay all others: the worker keeps the time that the text is expected to take,
    though never more than any request may take. The text itself fails at its deadline in any case
    (`WorkerPool.stream`).

    Args:
        spend: Called with the seconds that a worker has computed on a text in vain; gives the error
            of a text that is too slow rather than late.
        most_seconds: The longest that a request may take.
    """

    def __init__(
        self,
        queue: FairQueue,
        stats: PoolStats,
        stages: Stages,
        bulk: bool,
        spend: Callable[[ParseInput, float], ParsebankError | None],
        most_seconds: float,
    ) -> None:
        self._queue = queue
        self._stats = stats
        self._stages = stages
        self._bulk = bulk
        self._spend = spend
        self._most_seconds = most_seconds

    async def feed(self, worker: ParserProcess, batch: list[PendingText]) -> Reason | None:
        """Have a batch parsed; returns the reason if the worker is dead afterwards."""
        pending = deque(batch)
        started, computed = _now(), worker.usage.cpu_seconds()
        for text in batch:
            self._stages.observe("queue", started - text.request.arrived)
        try:
            worker.send([text.item for text in batch])
            await (self._await_all if self._bulk else self._await_each)(worker, pending)
        except TimeoutError:
            # What earlier texts of the batch took of the processor is at most the time until then,
            # which on a busy machine is more than all that was computed.
            before = pending[0].began - started
            spent = max(worker.usage.cpu_seconds() - computed - before, 0.0)
            worker.kill()
            self._pass_over(pending, spent)
            return "deadline"
        except EOFError:
            worker.kill()
            self._blame(pending)
            return "died"
        finally:
            self._queue.put_back(text for text in pending if text.is_open)
        self._stats.batch_words.observe(sum(text.words for text in batch))
        self._stats.batch_seconds.observe(_now() - started)
        return None

    async def _await_each(self, worker: ParserProcess, pending: deque[PendingText]) -> None:
        """Receive the outcomes one by one, each with its own deadline."""
        while pending:
            started = pending[0].began = _now()
            async with asyncio.timeout_at(self._kill_deadline([pending[0]])):
                outcome = await worker.receive()
            self._note([pending[0]], _now() - started)
            self._settle(pending, outcome)

    async def _await_all(self, worker: ParserProcess, pending: deque[PendingText]) -> None:
        texts = list(pending)
        started = _now()
        for text in texts:
            text.began = started
        async with asyncio.timeout_at(self._kill_deadline(texts)):
            while pending:
                self._settle(pending, await worker.receive())
        self._note(texts, _now() - started)

    def _note(self, texts: list[PendingText], seconds: float) -> None:
        self._queue.learn(sum(text.words for text in texts), seconds)
        for _ in texts:
            self._stages.observe("parse", seconds / len(texts))

    def _kill_deadline(self, texts: list[PendingText]) -> float:
        """Time to kill a worker that starts on these texts now, in the event loop's time."""
        expected = self._queue.expected_seconds(sum(text.words for text in texts))
        earliest = min(text.request.deadline for text in texts) - _AHEAD_SECONDS
        grace = min(_GRACE_SECONDS + _GRACE_FACTOR * expected, self._most_seconds)
        return max(earliest, _now() + grace)

    def _settle(self, pending: deque[PendingText], outcome: Outcome) -> None:
        pending.popleft().settle(outcome)
        self._stats.texts += 1

    def _pass_over(self, pending: deque[PendingText], spent: float) -> None:
        """Settle the texts that are past their deadline, after a timeout of ``spent`` seconds."""
        if self._is_unclear(pending):
            _separate(pending)
        # Also if nobody waits for it any more: who has left may come back with it.
        elif error := self._spend(pending[0].item, spent):
            pending[0].settle(error)
        for text in pending:
            if text.request.deadline - _AHEAD_SECONDS <= _now():
                text.settle(text.request.too_late())

    def _blame(self, pending: deque[PendingText]) -> None:
        """Count a death against the text in work, which fails at the second death."""
        if self._is_unclear(pending):
            _separate(pending)
            return
        text = pending[0]
        text.deaths += 1
        if text.deaths > _DEATHS_ALLOWED:
            text.settle(
                WorkerDiedError(
                    f"{text.deaths} parser processes died on this text; the service is well, but "
                    "the model or the machine's memory may not be",
                    deaths=text.deaths,
                )
            )

    def _is_unclear(self, pending: deque[PendingText]) -> bool:
        return self._bulk and len(pending) > 1


def _separate(texts: deque[PendingText]) -> None:
    for text in texts:
        text.alone = True


def _now() -> float:
    return asyncio.get_running_loop().time()
