"""Several services on one PostgreSQL, one store and one state folder."""

from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from featurestore import open_store
from service.jobs.database import open_database
from service.jobs.processes import is_gone, owner_name
from service.jobs.queue import JobQueue
from service.settings import Settings

from .conftest import Running, ndjson, pairs
from .postgres import postgres_server
from .servers import serving, wait_for

COUNT = 360


@pytest.mark.slow
def test_replicas_share_their_jobs_and_one_may_die(
    make_settings: Callable[..., Settings], new_database: str
) -> None:
    settings = make_settings(job_workers=1, job_shard_segments=60, jobs_url=new_database)
    engine = open_database(new_database)
    queue = JobQueue.of(engine, settings)
    with serving(settings) as (first, one), serving(settings) as (second, two):
        jobs = [submit(one, "left"), submit(two, "right")]
        ids = [job["id"] for job in reversed(jobs)]
        assert listed(one) == listed(two) == ids
        wait_for(lambda: has_shard(first, queue) and has_shard(second, queue))
        first.kill()
        first.wait()
        wait_for(lambda: all(show(two, job)["state"] == "done" for job in jobs))
        assert listed(two) == ids
        shown = [show(two, job) for job in jobs]
    assert [job["counts"]["stored"] for job in shown] == [COUNT, COUNT]
    assert [job["shards"]["done"] for job in shown] == [job["shards"]["total"] for job in shown]
    with open_store(settings.store) as store:
        for name in ("left", "right"):
            query = "select seq from examples where dataset = ? order by 1"
            assert store.sql(query, [name]).fetchall() == [(n,) for n in range(COUNT)]
    assert list((settings.state_dir / "staging").iterdir()) == []
    engine.dispose()


def submit(client: httpx.Client, name: str) -> dict[str, Any]:
    answer = client.post(f"/datasets/{name}/backfill", content=ndjson(pairs(COUNT, name)))
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def show(client: httpx.Client, job: dict[str, Any]) -> dict[str, Any]:
    return dict(client.get(f"/jobs/{job['id']}").json())


def listed(client: httpx.Client) -> list[str]:
    return [job["id"] for job in client.get("/jobs").json()]


def has_shard(server: subprocess.Popen[bytes], queue: JobQueue) -> bool:
    """Whether a worker of this server has a shard in hand."""
    family = psutil.Process(server.pid).children(recursive=True)
    return bool(queue.owners() & {owner_name(process.pid) for process in family})


def test_only_an_owner_of_this_host_can_be_seen_to_be_gone() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert is_gone(owner_name(ended.pid))
    assert not is_gone(owner_name(os.getpid()))
    elsewhere = [f"elsewhere/1:{ended.pid}", f"{socket.gethostname()}/1:{ended.pid}"]
    assert [is_gone(owner) for owner in elsewhere] == [False, False]


@pytest.mark.slow
async def test_locked_job_database_only_delays_a_job(running: Running, tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    url = f"sqlite:///{path}?timeout=5"  # less is not enough on a busy disk
    async with running(job_workers=1, job_shard_segments=60, jobs_url=url) as service:
        job = await service.submit(ndjson(pairs(120)))
        while job["shards"]["done"] == 0:
            await asyncio.sleep(0.02)
            job = await service.job(job)
        workers = service.jobs.worker_pids
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            refused = await service.client.get("/jobs")
            assert (refused.status_code, refused.json()["error_type"]) == (503, "job_database")
            time.sleep(2.5)
            other.execute("COMMIT")
        job = await service.ended(job)
        assert (job["state"], job["counts"]["stored"]) == ("done", 120)
        assert service.jobs.worker_pids == workers
        assert [row[0] for row in service.rows()] == list(range(120))


@pytest.mark.slow
async def test_postgresql_restart_loses_nothing(
    running: Running,
) -> None:
    with postgres_server() as server:
        url = server.create("jobs")
        async with running(job_workers=2, job_shard_segments=60, jobs_url=url) as service:
            job = await service.submit(ndjson(pairs(300)))
            while job["shards"]["done"] == 0:
                job = await service.job(job)
            for mode in ("fast", "immediate"):
                server.stop(mode)
                assert (await service.client.get("/jobs")).json()["error_type"] == "job_database"
                assert (await service.client.get("/health/live")).status_code == 200
                time.sleep(2)
                server.start()
                time.sleep(1)
            job = await service.ended(job)
            assert (job["state"], job["counts"]["stored"]) == ("done", 300)
            assert [row[0] for row in service.rows()] == list(range(300))
