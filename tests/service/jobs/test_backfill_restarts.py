"""Killed workers, killed services: no acknowledged job is lost, no row comes twice."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import select

from featurestore import open_store
from service.jobs.database import database_url, open_database, shards
from service.jobs.processes import (
    GRACE_SECONDS,
    WorkerProcess,
    end_ahead,
    owner_name,
    start_ahead,
)
from service.jobs.queue import JobQueue
from service.jobs.staging import shard_path
from service.settings import Settings

from .conftest import Running, Service, ndjson, pair, pairs
from .servers import is_running, serving, wait_for


async def until_owned(service: Service) -> None:
    """Wait until a living worker has a shard in hand, or all are done."""
    queue = JobQueue.of(open_database(database_url(service.settings)), service.settings)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        living = {owner_name(pid) for pid in service.jobs.worker_pids}
        if queue.owners() & living:
            return
        await asyncio.sleep(0.02)
    pytest.fail("no worker took a shard")


@pytest.mark.slow
async def test_killed_job_workers_lose_nothing(running: Running) -> None:
    async with running(job_workers=1, job_shard_segments=150) as service:
        job = await service.submit(ndjson(pairs(300)))
        for delay in (0.0, 0.5):
            await until_owned(service)
            await asyncio.sleep(delay)
            for pid in service.jobs.worker_pids:
                os.kill(pid, signal.SIGKILL)
        job = await service.ended(job)
        assert job["state"] == "done"
        assert job["counts"]["stored"] == 300
        parses = job["counts"]["parses"]
        assert parses["done"] + parses["reused"] == 600
        assert [row[0] for row in service.rows()] == list(range(300))


@pytest.mark.slow
async def test_hanging_worker_is_killed_and_its_shard_rerun(running: Running) -> None:
    async with running(job_workers=1, job_lease_seconds=4, job_shard_segments=300) as service:
        job = await service.submit(ndjson(pairs(150)))
        await until_owned(service)
        hung = service.jobs.worker_pids
        for pid in hung:
            os.kill(pid, signal.SIGSTOP)
        job = await service.ended(job)
        assert (job["state"], job["counts"]["stored"]) == ("done", 150)
        assert not any(psutil.pid_exists(pid) for pid in hung)
        assert len(service.rows()) == 150


@pytest.mark.slow
async def test_one_shard_takes_one_worker_which_starts_with_the_upload(running: Running) -> None:
    async with running(job_workers=2, job_shard_segments=1000) as service:
        answer = await service.client.post(
            "/datasets/pairs/backfill?dry_run=true", content=ndjson([])
        )
        assert answer.status_code == 200
        (first,) = service.jobs.worker_pids
        job = await service.ended(await service.submit(ndjson(pairs(40))))
        assert (job["state"], service.jobs.worker_pids) == ("done", [first])


async def test_a_worker_that_still_loads_does_not_delay_the_end_of_the_service(
    running: Running,
) -> None:
    async with running(job_workers=1) as service:
        await service.client.post("/datasets/pairs/backfill?dry_run=true", content=ndjson([]))
        (pid,) = service.jobs.worker_pids
        os.kill(pid, signal.SIGSTOP)  # as one that loads, it does not see that it should end
        started = time.monotonic()
    assert time.monotonic() - started < GRACE_SECONDS / 2
    assert not psutil.pid_exists(pid)


def test_killed_worker_reports_its_cause(
    make_settings: Callable[..., Settings],
) -> None:
    worker = WorkerProcess(make_settings())
    os.kill(worker.pid, signal.SIGSTOP)
    wait_for(lambda: worker.is_stopped)
    worker.kill("was stopped and did not answer")
    assert worker.failed
    assert worker.cause == f"worker {worker.pid} was stopped and did not answer"


def test_a_worker_that_outstays_a_stop_has_not_failed(
    make_settings: Callable[..., Settings],
) -> None:
    worker = WorkerProcess(make_settings())
    os.kill(worker.pid, signal.SIGSTOP)
    wait_for(lambda: worker.is_stopped)
    worker.wait(0.1)
    assert not worker.is_alive
    assert not worker.failed


def workers_started() -> list[psutil.Process]:
    """This process's own job workers."""
    children = [(one, one.as_dict(["cmdline"])["cmdline"]) for one in psutil.Process().children()]
    return [one for one, command in children if "service.jobs.worker" in (command or ())]


@pytest.mark.slow
@pytest.mark.parametrize("lives", [True, False])
def test_a_process_that_started_ahead_becomes_the_first_worker_if_it_lives(
    make_settings: Callable[..., Settings], lives: bool
) -> None:
    start_ahead()
    start_ahead()
    (ahead,) = workers_started()
    if not lives:
        ahead.kill()
        ahead.wait()
    worker = WorkerProcess(make_settings())
    assert (worker.pid == ahead.pid) == lives
    worker.ask_to_stop()
    worker.wait()
    assert not worker.failed


def test_a_process_that_started_ahead_ends_unneeded() -> None:
    start_ahead()
    (ahead,) = workers_started()
    end_ahead()
    assert not ahead.is_running()


@pytest.mark.slow
async def test_stopping_the_service_releases_its_shards(running: Running) -> None:
    async with running(job_workers=1, job_shard_segments=250) as service:
        job = await service.submit(ndjson(pairs(250)))
        await until_owned(service)
        pids = service.jobs.worker_pids
        assert pids
    assert not any(psutil.pid_exists(pid) for pid in pids)
    async with running(job_workers=1) as service:
        job = await service.ended(job)
        assert job["counts"]["stored"] == 250
        assert [row[0] for row in service.rows()] == list(range(250))
    assert list((service.settings.state_dir / "staging").iterdir()) == []


@pytest.mark.slow
def test_a_killed_service_loses_no_acknowledged_job_and_leaves_no_process(
    make_settings: Callable[..., Settings],
) -> None:
    settings = make_settings(job_workers=1, job_shard_segments=150)
    with serving(settings) as (server, client):
        job = client.post("/datasets/pairs/backfill", content=ndjson(pairs(300))).json()
        wait_for(lambda: client.get(f"/jobs/{job['id']}").json()["started"] is not None)
        family = psutil.Process(server.pid).children(recursive=True)
        assert family
        server.kill()
        server.wait()
        wait_for(lambda: not any(is_running(process) for process in family))
    with serving(settings) as (server, client):
        wait_for(lambda: client.get(f"/jobs/{job['id']}").json()["state"] == "done")
        counts = client.get(f"/jobs/{job['id']}").json()["counts"]
        again = client.post("/datasets/pairs/backfill", content=ndjson(pairs(300))).json()
        wait_for(lambda: client.get(f"/jobs/{again['id']}").json()["state"] == "done")
        second = client.get(f"/jobs/{again['id']}").json()["counts"]
    assert counts["stored"] == 300
    assert (second["already_stored"], second["parses"]["done"]) == (300, 0)
    with open_store(settings.store) as store:
        rows = store.sql("select seq from examples order by seq").fetchall()
    assert rows == [(n,) for n in range(300)]


async def workers_of(service: Service, job: dict[str, Any], count: int) -> set[int]:
    """The processes that have worked on a job by the time that all its examples are stored."""
    workers: set[int] = set()
    while job["state"] in ("queued", "running"):
        workers.update(service.jobs.worker_pids)
        await asyncio.sleep(0.02)
        job = await service.job(job)
    assert (job["state"], job["counts"]["stored"]) == ("done", count), job
    assert [row[0] for row in service.rows()] == list(range(count))
    return workers


@pytest.mark.slow
async def test_a_worker_that_has_grown_is_replaced_between_two_shards(running: Running) -> None:
    changes = {"job_workers": 1, "job_shard_segments": 100, "worker_max_growth_mb": 1}
    async with running(**changes) as service:
        large = pair(100, second="It works. Does it? " * 1_500)
        examples = [*pairs(100), large, *(pair(n) for n in range(101, 300))]
        job = await service.submit(ndjson(examples))
        assert len(await workers_of(service, job, 300)) > 1


@pytest.mark.slow
async def test_long_work_keeps_its_lease(running: Running) -> None:
    async with running(job_workers=1, job_lease_seconds=0.5, job_shard_segments=400) as service:
        job = await service.submit(ndjson(pairs(150)))
        assert len(await workers_of(service, job, 150)) == 1
        assert set(tries_of(service)) == {1}


def tries_of(service: Service) -> list[int]:
    """How often each shard was claimed."""
    with open_database(database_url(service.settings)).connect() as connection:
        return list(connection.execute(select(shards.c.tries)).scalars())


@pytest.mark.slow
async def test_a_job_whose_workers_take_too_long_says_so(running: Running) -> None:
    async with running(job_workers=1, job_text_seconds=0.01, job_max_tries=2) as service:
        job = await service.backfill(ndjson(pairs(4)))
        assert job["state"] == "failed"
        assert job["error"]["error_type"] == "worker_died"
        assert "took longer than job_text_seconds (0.01 s)" in job["error"]["message"]


@pytest.mark.slow
async def test_reading_a_shard_has_the_step_limit(running: Running) -> None:
    async with running(job_workers=0) as service:
        job = await service.submit(ndjson(pairs(4)))
    path = shard_path(service.settings.state_dir / "staging" / job["id"], 0)
    path.unlink()
    os.mkfifo(path)  # reading it hangs, as on a network disk that went away
    async with running(job_workers=1, job_text_seconds=0.1, job_max_tries=1) as service:
        job = await service.ended(job)
        assert "took longer than job_text_seconds (0.1 s)" in job["error"]["message"]


HANGING = """
import ctypes, time
from service.parsers.udpipe.backend import UdpipeParser

def hanging(self, items, limits, parse_many=UdpipeParser.parse_many):
    if any("HANGING" in (item.text or "") for item in items):
        {hang}
    yield from parse_many(self, items, limits)

UdpipeParser.parse_many = hanging
"""


def let_workers_hang(folder: Path, monkeypatch: pytest.MonkeyPatch, hang: str) -> None:
    """Make job workers hang at texts with the word HANGING."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(HANGING.format(hang=hang))
    monkeypatch.syspath_prepend(str(folder))


@pytest.mark.slow
@pytest.mark.parametrize(
    "hang",
    [
        pytest.param("time.sleep(1_000)", id="others-run"),
        pytest.param("ctypes.PyDLL(None).sleep(1_000)", id="holds-the-interpreter"),
    ],
)
async def test_hanging_text_is_dropped_after_the_step_limit(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hang: str
) -> None:
    let_workers_hang(tmp_path / "site", monkeypatch, hang)
    items = [*pairs(30), pair(30, second="A HANGING text.")]
    async with running(job_workers=1, job_text_seconds=10) as service:
        body = ndjson(items, parser="udpipe/english-ewt")
        job = await service.ended(await service.submit(body), 400)
        assert (job["state"], job["counts"]["stored"]) == ("done", 30), job
        assert job["counts"]["dropped"] == {"worker_died": 1}
        assert len(service.rows()) == 30


@pytest.mark.slow
async def test_a_stop_while_a_text_takes_long_is_no_try(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        let_workers_hang(tmp_path / "site", patch, "time.sleep(1_000)")
        async with running(job_workers=1) as service:
            text = pair(0, second="A HANGING text.")
            job = await service.submit(ndjson([text], parser="udpipe/english-ewt"))
            await service.until_parsing()
        assert tries_of(service) == [0]
    async with running(job_workers=1, job_max_tries=1) as service:
        job = await service.ended(job)
        assert (job["counts"]["stored"], job["counts"]["dropped"]) == (1, {})


@pytest.mark.slow
async def test_a_worker_that_dies_before_a_stop_has_used_a_try(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_workers_hang(tmp_path / "site", monkeypatch, "time.sleep(1_000)")
    async with running(job_workers=1) as service:
        text = pair(0, second="A HANGING text.")
        await service.submit(ndjson([text], parser="udpipe/english-ewt"))
        await service.until_parsing()
        for pid in service.jobs.worker_pids:
            os.kill(pid, signal.SIGKILL)
    assert tries_of(service) == [1]


@pytest.mark.slow
def test_a_worker_is_as_nice_as_the_settings_say(make_settings: Callable[..., Settings]) -> None:
    worker = WorkerProcess(make_settings(job_nice=7))
    try:
        wait_for(lambda: psutil.Process(worker.pid).nice() == min(psutil.Process().nice() + 7, 19))
        assert worker.is_alive
    finally:
        worker.kill()
