"""The workers of one model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from contextvars import Context
from functools import partial
from typing import Final

from service.logs import get_logger
from service.parsers import BACKENDS, Limits, ModelFile, ParseInput
from service.parsers.base import Outcome
from service.settings import Settings
from service.timing import Stages
from service.workers.feeder import Feeder
from service.workers.process import ForkServer, ParserProcess
from service.workers.queue import FairQueue, PendingRequest, PendingText
from service.workers.slow import SlowTexts
from service.workers.stats import PoolStats, Reason, StatsByParser
from syntax.errors import ModelLoadError, ParsebankError, WorkerDiedError

STARTS: Final = 4
"""Most starts in a row: a file that crashes its library does so every time."""

COUNTED_AT_ONCE: Final = 100_000
"""Characters whose words are counted in the event loop, in a millisecond; more, in a thread."""

_MIB = 1024 * 1024

_log = get_logger(__name__)


class WorkerPool:
    """A fork server and its workers; belongs to one event loop.

    Args:
        fingerprint: Expected fingerprint of the parser; the file may change before it is loaded.
        stats: Counts to continue; new ones when left out.
        slow: Texts that no worker is given again; none when left out.
    """

    def __init__(
        self,
        model: ModelFile,
        fingerprint: str,
        settings: Settings,
        stats: PoolStats | None = None,
        stages: Stages | None = None,
        slow: SlowTexts | None = None,
    ) -> None:
        self.model = model
        self.fingerprint = fingerprint
        self.queue = FairQueue(settings.max_queued_words, settings.workers, settings.batch_words)
        self.stats = StatsByParser()[model.name] if stats is None else stats
        self.busy = 0
        bulk = BACKENDS[model.backend].bulk
        slow = SlowTexts(settings) if slow is None else slow
        self._slow_error = partial(slow.error, fingerprint)
        self._feeder = Feeder(
            self.queue,
            self.stats,
            stages or Stages(),
            bulk,
            partial(slow.add, fingerprint),
            settings.request_deadline_seconds,
        )
        self._settings = settings
        self._fork_server: ForkServer | None = None
        self._spawning = asyncio.Lock()
        self._slots: list[asyncio.Task[None]] = []
        self._workers: set[ParserProcess] = set()
        self._is_stopped = False

    async def start(self) -> None:
        try:
            self._fork_server = await self._start_fork_server()
            workers = [await self._spawn() for _ in range(self._settings.workers)]
        except BaseException:
            await self.stop()
            raise
        # An empty context: they outlive the request that loaded the model, and must not log its id.
        self._slots = [
            asyncio.create_task(self._run_slot(worker), context=Context()) for worker in workers
        ]

    async def stop(self) -> None:
        self._is_stopped = True
        for slot in self._slots:
            slot.cancel()
        await asyncio.gather(*self._slots, return_exceptions=True)
        self._fail_all(unloaded())
        for worker in self._workers:
            await worker.end()
        if self._fork_server is not None:
            await self._fork_server.stop()

    @property
    def is_idle(self) -> bool:
        return not self.queue and not self.busy

    @property
    def is_broken(self) -> bool:
        """True if a worker could not be replaced; a new pool may succeed."""
        return any(slot.done() for slot in self._slots)

    @property
    def pids(self) -> list[int]:
        """Process ids, the fork server's first. Safe for threads."""
        fork_server = [] if self._fork_server is None else [self._fork_server.pid]
        return fork_server + [worker.pid for worker in list(self._workers)]

    async def parse(self, items: Sequence[ParseInput], deadline: float) -> list[Outcome]:
        """Parse texts; each gets its parse or its own error.

        Args:
            items: Texts that `service.pipeline.check_input` has accepted.
            deadline: In the event loop's time.

        Raises:
            OverloadedError: There is no room for them in the queue; nothing was queued.
            SpecError: There is no room for them even in an empty queue.
        """
        async with aclosing(self.stream(items, deadline)) as answers:
            found = [answer async for answer in answers]
        return [outcome for _, outcome in sorted(found, key=lambda answer: answer[0])]

    async def stream(
        self, items: Sequence[ParseInput], deadline: float, first: bool = False
    ) -> AsyncGenerator[tuple[int, Outcome], None]:
        """Parse texts as `parse` does; gives position and outcome of each as it is known.

        Closing the iterator, or cancelling its task, removes waiting texts from the queue. If
        ``first``, the request has the next turn.
        """
        loop = asyncio.get_running_loop()
        arrived = loop.time()
        if sum(item.characters for item in items) > COUNTED_AT_ONCE:
            words = await asyncio.to_thread(_words, items)
        else:
            words = _words(items)
        if self._is_stopped:
            raise unloaded()
        request = PendingRequest(items, words, arrived, deadline)
        request.refuse(self._slow_error)
        self.queue.put(request, first)
        alarm = loop.call_at(deadline, self.queue.expire, request)
        try:
            for _ in items:
                yield await request.answers.get()
        finally:
            alarm.cancel()
            self.queue.withdraw(request)

    async def _run_slot(self, worker: ParserProcess) -> None:
        settings = self._settings
        try:
            while True:
                batch = await self.queue.take(settings.batch_words, settings.batch_wait_seconds)
                reason = await self._serve(worker, batch)
                if reason is not None:
                    self.stats.replaced[reason] += 1
                    self._workers.discard(worker)
                    await worker.end()
                    worker = await self._spawn()
        except ParsebankError as error:
            _log.error("parser gave up", model=self.model.name, error=error.message)
            self._fail_all(error)

    async def _serve(self, worker: ParserProcess, batch: list[PendingText]) -> Reason | None:
        if worker.is_gone:
            self.queue.put_back(batch)
            return "died"
        self.busy += 1
        try:
            return await self._feeder.feed(worker, batch) or self._recycle_reason(worker)
        finally:
            self.busy -= 1

    def _recycle_reason(self, worker: ParserProcess) -> Reason | None:
        """Reason to recycle a worker; growth counts from the end of its first batch."""
        if worker.texts >= self._settings.worker_max_texts:
            return "recycled_texts"
        if worker.usage.growth() > self._settings.worker_max_growth_mb * _MIB:
            return "recycled_memory"
        return None

    async def _spawn(self) -> ParserProcess:
        """Fork a worker; a dead fork server is replaced first, and texts wait meanwhile."""
        async with self._spawning:
            for left in reversed(range(STARTS)):
                try:
                    worker = await self._running_fork_server().fork()
                except WorkerDiedError:
                    if not left:
                        raise
                    _log.warning("fork server died", model=self.model.name)
                    await self._running_fork_server().stop()
                    self._fork_server = await self._start_fork_server()
                    self.stats.fork_server_restarts += 1
                else:
                    self._workers.add(worker)
                    return worker
            raise AssertionError("the last try returns or raises")

    async def _start_fork_server(self) -> ForkServer:
        """Load the model; one more time if the process was killed meanwhile."""
        settings = self._settings
        limits = Limits(settings.max_chars_per_text, settings.max_words_per_sentence)

        async def start() -> ForkServer:
            seconds = settings.model_load_seconds
            return await ForkServer.start(self.model, limits, settings.device, seconds)

        for _ in range(STARTS - 1):
            try:
                fork_server = await start()
                break
            except ModelLoadError as error:
                if not error.detail.get("process_died"):
                    raise
                _log.warning("fork server died as it loaded", model=self.model.name)
        else:
            fork_server = await start()
        if fork_server.fingerprint != self.fingerprint:
            await fork_server.stop()
            raise ModelLoadError(f"{self.model.path} changed while it was loaded; try again")
        _log.info("parser loaded", model=self.model.name, pid=fork_server.pid)
        return fork_server

    def _running_fork_server(self) -> ForkServer:
        if self._fork_server is None:
            raise AssertionError("the pool was not started")
        return self._fork_server

    def _fail_all(self, error: ParsebankError) -> None:
        for text in self.queue.drain():
            text.settle(error)


def _words(items: Sequence[ParseInput]) -> list[int]:
    return [item.words for item in items]


def unloaded() -> WorkerDiedError:
    return WorkerDiedError("the parser is being unloaded; send the text again")
