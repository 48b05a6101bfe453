"""The workers of one model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from contextvars import Context

import structlog

from service.parsers import BACKENDS, Limits, ModelFile, ParseInput
from service.parsers.base import Outcome
from service.settings import Settings
from service.timing import Stages
from service.workers.feeder import Feeder
from service.workers.process import Nursery, Worker
from service.workers.queue import Job, JobQueue, Request
from service.workers.stats import PoolStats, Reason
from syntax.errors import ModelLoadError, ParsebankError, WorkerDiedError

_MIB = 1024 * 1024

_log = structlog.get_logger(__name__)


class WorkerPool:
    """A nursery and its workers; belongs to one event loop.

    Args:
        model: The model to load.
        fingerprint: Of the parser that it must be; the file may change before it is loaded.
        settings: Number of workers, limits, deadlines.
        stats: Where to count; a pool that follows another goes on with its counts.
        stages: Where to note how long texts wait and are parsed.

    Attributes:
        model: What they have loaded.
        fingerprint: See above.
        queue: What waits for them: ``queue.texts``, ``queue.words``.
        stats: What they have done.
        busy: Workers that have a batch in hand.
    """

    def __init__(
        self,
        model: ModelFile,
        fingerprint: str,
        settings: Settings,
        stats: PoolStats | None = None,
        stages: Stages | None = None,
    ) -> None:
        self.model = model
        self.fingerprint = fingerprint
        self.queue = JobQueue(settings.max_queued_words, settings.workers, settings.batch_words)
        self.stats = PoolStats() if stats is None else stats
        self.busy = 0
        bulk = BACKENDS[model.backend].bulk
        self._feeder = Feeder(self.queue, self.stats, stages or Stages(), bulk)
        self._settings = settings
        self._nursery: Nursery | None = None
        self._hiring = asyncio.Lock()
        self._places: list[asyncio.Task[None]] = []
        self._workers: set[Worker] = set()
        self._is_stopped = False

    async def start(self) -> None:
        """Load the model and start the workers.

        Raises:
            ModelLoadError: The model cannot be loaded.
        """
        try:
            self._nursery = await self._found_nursery()
            workers = [await self._hire() for _ in range(self._settings.workers)]
        except BaseException:
            await self.stop()
            raise
        # They outlive the request that the model was loaded for, and must not log under its id.
        self._places = [
            asyncio.create_task(self._keep_place(worker), context=Context()) for worker in workers
        ]

    async def stop(self) -> None:
        """End every process; what is not answered fails."""
        self._is_stopped = True
        for place in self._places:
            place.cancel()
        await asyncio.gather(*self._places, return_exceptions=True)
        self._fail_all(unloaded())
        for worker in self._workers:
            await worker.end()
        if self._nursery is not None:
            await self._nursery.stop()

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is being parsed."""
        return not self.queue and not self.busy

    @property
    def is_broken(self) -> bool:
        """Whether the pool gave up; a new one may do better."""
        return any(place.done() for place in self._places)

    @property
    def pids(self) -> list[int]:
        """Its processes, the one that has loaded the model first; any thread may ask."""
        nursery = [] if self._nursery is None else [self._nursery.pid]
        return nursery + [worker.pid for worker in list(self._workers)]

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

        Closing the iterator (or cancelling the task that waits for it) takes what still waits
        out of the queue.

        Args:
            items: See `parse`.
            deadline: See `parse`.
            first: Take the next turn of all requests.
        """
        if self._is_stopped:
            raise unloaded()
        loop = asyncio.get_running_loop()
        request = Request(items, loop.time(), deadline)
        self.queue.put(request, first)
        alarm = loop.call_at(deadline, self.queue.expire, request)
        try:
            for _ in items:
                yield await request.answers.get()
        finally:
            alarm.cancel()
            self.queue.withdraw(request)

    async def _keep_place(self, worker: Worker) -> None:
        """Keep a worker in one place, and feed it."""
        settings = self._settings
        try:
            while True:
                batch = await self.queue.take(settings.batch_words, settings.batch_wait_seconds)
                reason = await self._serve(worker, batch)
                if reason is not None:
                    self.stats.replaced[reason] += 1
                    self._workers.discard(worker)
                    await worker.end()
                    worker = await self._hire()
        except ParsebankError as error:
            _log.error("parser gave up", model=self.model.name, error=error.message)
            self._fail_all(error)

    async def _serve(self, worker: Worker, batch: list[Job]) -> Reason | None:
        """Have a batch parsed; returns why the worker is to be replaced, if it is."""
        if worker.is_gone:
            self.queue.put_back(batch)
            return "died"
        self.busy += 1
        try:
            return await self._feeder.feed(worker, batch) or self._wear(worker)
        finally:
            self.busy -= 1

    def _wear(self, worker: Worker) -> Reason | None:
        """Whether a worker has parsed or grown enough. Nothing is in its hands now.

        Growth counts from the end of the first batch, in which libraries load what they need.
        """
        if worker.texts >= self._settings.worker_max_texts:
            return "recycled_texts"
        if worker.growth.bytes() > self._settings.worker_max_growth_mb * _MIB:
            return "recycled_memory"
        return None

    async def _hire(self) -> Worker:
        """A new worker, from a new nursery if the old one is gone."""
        async with self._hiring:
            try:
                worker = await self._nursery_now().fork()
            except WorkerDiedError:
                _log.warning("nursery died", model=self.model.name)
                await self._nursery_now().stop()
                self._nursery = await self._found_nursery()
                self.stats.nursery_restarts += 1
                worker = await self._nursery.fork()
            self._workers.add(worker)
            return worker

    async def _found_nursery(self) -> Nursery:
        settings = self._settings
        limits = Limits(settings.max_chars_per_text, settings.max_words_per_sentence)
        nursery = await Nursery.start(
            self.model, limits, settings.device, settings.model_load_seconds
        )
        if nursery.fingerprint != self.fingerprint:
            await nursery.stop()
            raise ModelLoadError(f"{self.model.path} changed while it was loaded; try again")
        _log.info("parser loaded", model=self.model.name, pid=nursery.pid)
        return nursery

    def _nursery_now(self) -> Nursery:
        if self._nursery is None:
            raise AssertionError("the pool was not started")
        return self._nursery

    def _fail_all(self, error: ParsebankError) -> None:
        for job in self.queue.drain():
            job.settle(error)


def unloaded() -> WorkerDiedError:
    """What becomes of the texts of a model that is being unloaded."""
    return WorkerDiedError("the parser is being unloaded; send the text again")
