"""A service in this process, with workers that are warm, and timed backfills on it."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import datetime
from itertools import count, islice
from pathlib import Path

import httpx
import psutil

from benchmarks.backfill.corpus import settings, upload
from benchmarks.backfill.raw import WARM_UP
from service.app import create_app
from service.jobs.manager import JobManager
from service.services import Services


@asynccontextmanager
async def running_service(
    workers: int, lang: str
) -> AsyncIterator[tuple[httpx.AsyncClient, Services]]:
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(
            settings(
                lang,
                store=folder,
                workers=1,
                job_workers=workers,
                job_idle_seconds=600,
                log_level="warning",
            )
        )
        transport = httpx.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://bench", timeout=600) as client,
        ):
            gc.collect()
            gc.freeze()  # as the server does once it has started
            yield client, app.state.services


async def backfill(client: httpx.AsyncClient, name: str, lines: list[bytes]) -> dict:
    async def body() -> AsyncIterator[bytes]:
        for at in range(0, len(lines), 500):
            yield b"".join(lines[at : at + 500])

    answer = await client.post(f"/datasets/{name}/backfill", content=body())
    answer.raise_for_status()
    job = answer.json()
    while job["state"] in ("queued", "running"):
        await asyncio.sleep(0.5)  # the job has its own times; asking more often would cost some
        job = (await client.get(f"/jobs/{job['id']}")).json()
    if job["state"] != "done":
        raise RuntimeError(f"the job {job['state']}: {job['error']}")
    return job


@dataclass(frozen=True)
class Timed:
    """One backfill: wall-clock and processor seconds (of service and workers), and its job."""

    seconds: float
    processor: float
    job: dict


async def timed(
    client: httpx.AsyncClient, jobs: JobManager, lines: list[bytes], name: str = "corpus"
) -> Timed:
    started, processor = time.time(), processor_seconds(jobs)
    job = await backfill(client, name, lines)
    seconds = datetime.fromisoformat(job["finished"]).timestamp() - started
    return Timed(seconds, processor_seconds(jobs) - processor, job)


def processor_seconds(jobs: JobManager) -> float:
    times = [psutil.Process(pid).cpu_times() for pid in (os.getpid(), *jobs.worker_pids)]
    return sum(each.user + each.system for each in times)


async def warm_up(
    client: httpx.AsyncClient, jobs_file: Path, workers: int, tokenizer: str, lang: str
) -> None:
    """Small jobs, of different datasets, until every worker has done some with either tokenizer."""
    pairs = [(str(n), text, text) for n, text in enumerate(WARM_UP)]
    bodies = [list(upload(pairs, lang, **options)) for options in ({}, {"tokenizer": tokenizer})]
    names = (f"warm-{n}" for n in count())
    while workers_that_worked(jobs_file) < workers:
        rounds = islice(names, 4 * workers)
        jobs = [backfill(client, name, body) for name in rounds for body in bodies]
        await asyncio.gather(*jobs)


def workers_that_worked(jobs_file: Path) -> int:
    """How many have worked with each tokenizer: with the one that the fewest have."""
    query = """
        select coalesce(min(workers), 0) from (
            select count(distinct owner) as workers from shards join jobs on jobs.id = shards.job
            where shards.state = 'done' group by json_extract(request, '$.tokenizer')
        )"""
    with closing(sqlite3.connect(jobs_file)) as connection:
        return int(connection.execute(query).fetchone()[0])
