"""The workers of one model: deadlines, deaths and retries.

Batches only hide the round trip to a worker. There is no wait for a batch to fill: UDPipe gains
nothing from company, and while all workers are busy the queue fills by itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

import structlog

from service.parsers import Limits, ModelFile, ParseInput
from service.parsers.base import Outcome
from service.settings import Settings
from service.workers.process import Nursery, Worker
from service.workers.queue import Job, JobQueue
from syntax.errors import DeadlineError, ModelLoadError, ParsebankError, WorkerDiedError

_DEATHS_ALLOWED: Final = 1

_log = structlog.get_logger(__name__)


class WorkerPool:
    """A nursery and its workers; belongs to one event loop.

    Args:
        model: The model to load.
        fingerprint: Of the parser that it must be; the file may change before it is loaded.
        settings: Number of workers, limits, deadlines.

    Attributes:
        model: What they have loaded.
        queue: What waits for them.
        replaced: Workers that were killed or died so far.
    """

    def __init__(self, model: ModelFile, fingerprint: str, settings: Settings) -> None:
        self.model = model
        self.fingerprint = fingerprint
        self.queue = JobQueue(settings.max_queued_words, settings.workers)
        self.replaced = 0
        self._settings = settings
        self._nursery: Nursery | None = None
        self._hiring = asyncio.Lock()
        self._places: list[asyncio.Task[None]] = []
        self._workers: set[Worker] = set()
        self._busy = 0

    async def start(self) -> None:
        """Load the model and start the workers.

        Raises:
            ModelLoadError: The model cannot be loaded.
        """
        self._nursery = await self._found_nursery()
        places = range(self._settings.workers)
        workers = [await self._hire() for _ in places]
        self._places = [asyncio.create_task(self._keep_place(worker)) for worker in workers]

    async def stop(self) -> None:
        """End every process; what still waits fails."""
        for place in self._places:
            place.cancel()
        await asyncio.gather(*self._places, return_exceptions=True)
        for worker in self._workers:
            await worker.end()
        if self._nursery is not None:
            await self._nursery.stop()
        self._fail_all(WorkerDiedError("the parser is being unloaded; send the text again"))

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is being parsed."""
        return not self.queue and not self._busy

    @property
    def is_broken(self) -> bool:
        """Whether the pool gave up; a new one may do better."""
        return any(place.done() for place in self._places)

    async def parse(self, items: Sequence[ParseInput], deadline: float) -> list[Outcome]:
        """Parse texts; each gets its parse or its own error.

        Args:
            items: Texts that `service.pipeline.check_input` has accepted.
            deadline: In the event loop's time.

        Raises:
            OverloadedError: There is no room for them in the queue; nothing was queued.
        """
        loop = asyncio.get_running_loop()
        jobs = [Job(item, deadline, loop.create_future()) for item in items]
        self.queue.put(jobs)
        try:
            await asyncio.wait([job.answer for job in jobs], timeout=deadline - loop.time())
        finally:
            for job in jobs:
                job.settle(self._too_late())
        return [job.answer.result() for job in jobs]

    async def _keep_place(self, worker: Worker) -> None:
        """Keep a worker in one place, and feed it."""
        try:
            while True:
                batch = await self.queue.take(self._settings.batch_words)
                if worker.is_gone:
                    self.queue.put_back(batch)
                else:
                    await self._feed(worker, batch)
                if worker.is_gone:
                    self.replaced += 1
                    self._workers.discard(worker)
                    await worker.end()
                    worker = await self._hire()
        except ParsebankError as error:
            _log.error("parser gave up", model=self.model.name, error=error.message)
            self._fail_all(error)

    async def _feed(self, worker: Worker, batch: list[Job]) -> None:
        """Have a worker parse a batch; what it did not live to parse waits again."""
        pending = deque(batch)
        self._busy += 1
        try:
            worker.send([job.item for job in batch])
            while pending:
                pending[0].settle(await self._answer(worker, pending[0]))
                pending.popleft()
        except TimeoutError:
            worker.kill()
            pending.popleft().settle(self._too_late())
        except EOFError:
            worker.kill()
            self._blame(pending[0])
        finally:
            self._busy -= 1
            self.queue.put_back(job for job in pending if not job.answer.done())

    async def _answer(self, worker: Worker, job: Job) -> Outcome:
        """Wait for the text that the worker is at; it answers them in order."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        async with asyncio.timeout_at(job.deadline):
            outcome = await worker.receive()
        self.queue.learn(job.item.words, loop.time() - started)
        return outcome

    def _blame(self, job: Job) -> None:
        """Note that a worker died with this text in hand; a second death ends the matter."""
        job.deaths += 1
        if job.deaths > _DEATHS_ALLOWED:
            job.settle(
                WorkerDiedError(
                    f"{job.deaths} parser processes died on this text; the service is well, but "
                    "the model or the machine's memory may not be",
                    deaths=job.deaths,
                )
            )

    async def _hire(self) -> Worker:
        """A new worker, from a new nursery if the old one is gone."""
        async with self._hiring:
            try:
                worker = await self._nursery_now().fork()
            except WorkerDiedError:
                _log.warning("nursery died", model=self.model.name)
                await self._nursery_now().stop()
                self._nursery = await self._found_nursery()
                worker = await self._nursery.fork()
            self._workers.add(worker)
            return worker

    async def _found_nursery(self) -> Nursery:
        settings = self._settings
        limits = Limits(settings.max_chars_per_text, settings.max_words_per_sentence)
        nursery = await Nursery.start(self.model, limits, settings.model_load_seconds)
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

    def _too_late(self) -> DeadlineError:
        seconds = self._settings.request_deadline_seconds
        return DeadlineError(
            f"the text was not parsed within {seconds:g} s; send fewer or shorter texts at once, "
            "or raise request_deadline_seconds",
            seconds=seconds,
        )
