"""The manager of backfill jobs: accepts them, and keeps workers running while there is work."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from sqlalchemy import Engine

from featurestore import FeatureStore
from service.jobs.database import JobDatabaseError, database_url, open_database
from service.jobs.forecast import ForecastAnswer, forecast
from service.jobs.ledger import JobLedger, JobTotals, ReportWriter, check_failed
from service.jobs.processes import GRACE_SECONDS, WorkerProcess, end_ahead, engine_of, is_gone
from service.jobs.queue import JobQueue
from service.jobs.records import Job, JobFilter
from service.jobs.staging import StagingArea
from service.jobs.uploads import Receiver, StagedJob
from service.logs import get_logger
from service.settings import Settings
from service.tokenizer_cache import TokenizerCache
from syntax.errors import StoreError, UploadGoneError

BUSY_SECONDS: Final = 1.0
"""Seconds between two checks of the workers, while there are any."""

IDLE_SECONDS: Final = 2.0
"""Seconds between two checks for work from other replicas."""

EVENT_SECONDS: Final = 0.3
"""Seconds between two checks of a job that a client follows."""

KEEPALIVE_SECONDS: Final = 15.0
"""Longest silence of a progress stream, so that proxies keep the connection."""

CRASH_SECONDS: Final = 2.0
"""Pause after a worker that failed quickly, so that a broken installation does not spin."""

SWEEP_SECONDS: Final = 600.0
"""Seconds between two removals of uploads that are no longer needed."""

THREADS: Final = 8
"""Calls that may wait for the job database at once, and samples of dry runs that may be taken."""

T = TypeVar("T")

_LOG = get_logger("parsebank.jobs")


class JobManager:
    """Accepts backfill jobs and runs them in worker processes.

    Workers start when an upload begins or a shard is free, and exit when they have been idle for a
    while. They share only the job tables, the staged shards and the store, which they open for
    themselves. The engine decides what a worker is: with `dask` there is one, which sends shards to
    a cluster.
    """

    def __init__(
        self, settings: Settings, store: FeatureStore, tokenizers: TokenizerCache | None = None
    ) -> None:
        self._module, self._most = engine_of(settings)
        self._settings = settings
        self._store = store
        self._tokenizers = tokenizers or TokenizerCache(settings)
        self._engine: Engine = open_database(database_url(settings))
        self._ledger = JobLedger.of(self._engine, settings)
        self._reports = ReportWriter(store, self._ledger)
        self._queue = JobQueue.of(self._engine, settings)
        self._staging = StagingArea.of(settings)
        self._workers: list[WorkerProcess] = []
        self._threads = ThreadPoolExecutor(THREADS, "jobs")
        self._samplers = ThreadPoolExecutor(THREADS, "samples")
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._next_sweep = 0.0

    @property
    def worker_pids(self) -> list[int]:
        return [worker.pid for worker in self._workers if worker.is_alive]

    async def start(self) -> None:
        """Resume the jobs of an earlier run, and start to supervise workers."""
        await self.run(self._sweep)
        self._task = asyncio.create_task(self._supervise())

    async def stop(self) -> None:
        """Stop the workers; their shards go back to the queue."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await asyncio.to_thread(self._end_workers)
        self._engine.dispose()
        for threads in (self._threads, self._samplers):
            threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, call: Callable[..., T], *args: Any) -> T:
        """Make a call that may wait for the job database, in a thread of the manager's own.

        The threads that requests share stay free for parsing while the database is locked.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *args)

    async def submit(self, name: str, chunks: AsyncIterable[bytes]) -> Job:
        """Stage an upload to a dataset, as `Receiver.receive` reads it, and accept it as a job."""
        job_id = await self._receiver.receive(name, chunks)
        self._wake.set()
        return await self.get(job_id)

    async def forecast(self, name: str, chunks: AsyncIterable[bytes]) -> ForecastAnswer:
        return await forecast(self._receiver, name, chunks, self._samplers)

    @property
    def _receiver(self) -> Receiver:
        return Receiver(
            *(self._settings, self._tokenizers, self._store, self._staging),
            expect=self._expect,
            accept=self._accept,
        )

    def totals(self) -> JobTotals:
        return self._ledger.totals()

    async def get(self, job_id: str) -> Job:
        """One job; the report of one that has ended is in the store (see `ReportWriter`)."""
        job = await self.run(self._ledger.get, job_id)
        if not job.is_active:
            await self.run(self._write_reports)
        return job

    async def cancel(self, job_id: str) -> Job:
        """Stop a job; committed rows stay."""
        job = await self.run(self._ledger.cancel, job_id)
        await self.run(self._sweep)
        return job

    def holding(self, text: str, lang: str) -> list[str]:
        """Jobs of a language whose uploads are still kept and may hold a text; reads them."""
        jobs = self._ledger.needing_input(lang)
        return sorted(job for job in jobs if self._staging.may_hold(job, text))

    async def retry(self, job_id: str) -> Job:
        """Run the failed shards of a failed job again.

        Raises `ConflictError` if it has not failed, `UploadGoneError` if its upload is not kept.
        """
        job = await self.run(self._retry, job_id)
        self._wake.set()
        return job

    async def follow(
        self, job_id: str, keepalive_seconds: float = KEEPALIVE_SECONDS
    ) -> AsyncIterator[Job | None]:
        """A job now and after each change, until it has ended; ``None`` when it did not change.

        While the database does not answer, nothing changes.
        """
        last, told = await self.get(job_id), time.monotonic()
        yield last
        while last.is_active:
            await asyncio.sleep(min(EVENT_SECONDS, keepalive_seconds))
            try:
                job = await self.get(job_id)
            except JobDatabaseError:
                job = last
            if job != last or time.monotonic() - told > keepalive_seconds:
                told = time.monotonic()
                yield None if job == last else job
            last = job

    async def list(self, wanted: JobFilter) -> list[Job]:
        """Jobs, newest first; the reports of those that have ended are in the store."""
        jobs = await self.run(self._ledger.list, wanted)
        await self.run(self._write_reports)
        return jobs

    def _expect(self, tokenizer: str) -> None:
        """Start a worker, if there is none, which gets ready while the upload is read."""
        if self._most and not self._workers and time.monotonic() >= self._not_before:
            with contextlib.suppress(OSError):  # told by `_supervise`, which tries again
                self._workers.append(WorkerProcess(self._settings, self._module, tokenizer))

    async def _accept(self, staged: StagedJob) -> None:
        add = partial(
            self._ledger.add,
            staged.id,
            staged.request,
            examples=staged.examples,
            shard_count=staged.shards,
            stored=staged.stored,
        )
        await self.run(add)

    def _retry(self, job_id: str) -> Job:
        with self._staging.locked():
            check_failed(self._ledger.get(job_id))
            if not self._staging.has(job_id):
                raise UploadGoneError(
                    f"the examples of job {job_id} are no longer kept; send the backfill again: "
                    "what is stored is skipped",
                    job=job_id,
                )
            return self._ledger.retry(job_id)

    def _sweep(self) -> None:
        self._next_sweep = time.monotonic() + SWEEP_SECONDS
        removed = self._staging.sweep(self._ledger.needing_input)
        if removed:
            _LOG.debug("staged uploads removed", jobs=removed)

    async def _supervise(self) -> None:
        while True:
            self._wake.clear()
            try:
                self._start_workers(await self.run(self._look_after))
            except JobDatabaseError as error:
                _LOG.warning("job database away", reason=error.message)
            except Exception:  # logged and tried again: jobs must not stop unnoticed
                _LOG.exception("cannot look after jobs")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BUSY_SECONDS if self._workers else IDLE_SECONDS):
                    await self._wake.wait()

    def _look_after(self) -> int:
        """Kill stopped workers, reap dead ones, clean up; returns how many shards need a new one.

        A worker that is stuck ends by itself (`service.jobs.worker`), unless a signal stopped it.
        """
        overdue = self._queue.overdue_owners()
        for worker in self._workers:
            if worker.owner in overdue and worker.is_stopped:
                _LOG.warning("worker stopped", pid=worker.pid)
                worker.kill("was stopped and did not answer")
        ended = [worker for worker in self._workers if not worker.is_alive]
        for worker in ended:
            self._reap(worker)
        owners = self._queue.owners()
        for owner in filter(is_gone, owners):
            self._queue.end_leases(owner)
        self._queue.fail_exhausted()
        if ended or time.monotonic() >= self._next_sweep:
            self._sweep()
        self._write_reports()
        # A worker without a shard has just been started, or is about to claim one.
        waiting = [one for one in self._workers if one.owner not in owners and not one.is_stopped]
        return self._queue.free(limit=self._most + len(waiting)) - len(waiting)

    def _write_reports(self) -> None:
        with contextlib.suppress(StoreError):  # the next check tries again
            self._reports.write()

    def _reap(self, worker: WorkerProcess) -> None:
        if worker.failed:
            self._queue.end_leases(worker.owner, worker.cause)
        self._workers.remove(worker)
        worker.ask_to_stop()
        if worker.failed:
            _LOG.warning("worker died", pid=worker.pid, cause=worker.cause)
            quick = time.monotonic() - worker.started < CRASH_SECONDS
            self._not_before = time.monotonic() + (CRASH_SECONDS if quick else 0.0)

    def _start_workers(self, free: int) -> None:
        if time.monotonic() < self._not_before:
            return
        wanted = min(free, self._most - len(self._workers))
        self._workers += [WorkerProcess(self._settings, self._module) for _ in range(wanted)]

    def _end_workers(self) -> None:
        end_ahead()
        for worker in self._workers:
            worker.ask_to_stop()
        owners = None
        with contextlib.suppress(JobDatabaseError):
            owners = self._queue.owners()
        for worker in self._workers:
            # One without a shard may still be loading what it would need.
            is_idle = owners is not None and worker.owner not in owners
            worker.wait(0.0 if is_idle else GRACE_SECONDS)
        # Otherwise the leases expire, and the next service writes the reports.
        with contextlib.suppress(JobDatabaseError, StoreError):
            for worker in self._workers:
                if worker.failed:
                    self._queue.end_leases(worker.owner, worker.cause)
                else:
                    self._queue.release_all(worker.owner)
            self._sweep()
            self._reports.write()
        self._workers.clear()
