"""Killed workers, schedulers and coordinators: every row once, no drop, no manual step."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from featurestore import open_store
from service.settings import Settings

from .clusters import Cluster
from .conftest import Service, ndjson, pair, pairs, run_service, settings_in
from .servers import serving, wait_for

pytestmark = pytest.mark.slow

COUNT = 1_200
SHARD = 300
"""Texts of a shard: there are eight of them and more."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "cluster", workers=2) as cluster:
        cluster.wait_for_workers()
        yield cluster


def dask_settings(folder: Path, cluster: Cluster, **changes: Any) -> Settings:
    values = {
        "engine": "dask",
        "dask_scheduler": cluster.address,
        "job_shard_segments": SHARD,
        "job_lease_seconds": 20,
    }
    return settings_in(folder, **values | changes)


@asynccontextmanager
async def on(cluster: Cluster, folder: Path, **changes: Any) -> AsyncIterator[Service]:
    async with run_service(dask_settings(folder, cluster, **changes)) as service:
        yield service


async def shards_done(service: Service, job: dict[str, Any], least: int) -> None:
    """Wait until so many shards of a job are done, and it goes on."""
    while job["shards"]["done"] < least:
        await asyncio.sleep(0.05)
        job = await service.job(job)
        assert job["state"] in ("queued", "running"), job


async def begun(service: Service) -> dict[str, Any]:
    """A job of which one shard is done."""
    job = await service.submit(ndjson(pairs(COUNT)))
    await shards_done(service, job, 1)
    return job


async def check_ended(service: Service, job: dict[str, Any]) -> None:
    """Everything is stored once, and nothing was dropped."""
    check_counts(await service.ended(job))
    check_rows(service.settings.store)


def check_rows(store: str) -> None:
    with open_store(store) as opened:
        rows = opened.sql("select seq, example_id from examples order by 1, 2").fetchall()
        assert rows == [(n, f"pair-{n}") for n in range(COUNT)]
        assert opened.sql("select count(*) from drops").fetchall() == [(0,)]


def check_counts(job: dict[str, Any]) -> None:
    assert job["state"] == "done", job
    assert (job["counts"]["stored"], job["counts"]["dropped"]) == (COUNT, {})
    parses = job["counts"]["parses"]
    assert parses["done"] + parses["reused"] == 2 * COUNT


async def test_killed_dask_workers_lose_nothing(cluster: Cluster, tmp_path: Path) -> None:
    async with on(cluster, tmp_path) as service:
        job = await begun(service)
        os.kill(cluster.worker_pids()[0], signal.SIGKILL)
        await shards_done(service, job, 3)
        os.kill(cluster.worker_pids()[0], signal.SIGKILL)
        await check_ended(service, job)


async def test_hanging_dask_worker_is_restarted(cluster: Cluster, tmp_path: Path) -> None:
    async with on(cluster, tmp_path, job_lease_seconds=10) as service:
        job = await begun(service)
        hung = cluster.worker_pids()[0]
        os.kill(hung, signal.SIGSTOP)
        await check_ended(service, job)
        wait_for(lambda: not psutil.pid_exists(hung))


async def test_restarted_scheduler_loses_nothing(cluster: Cluster, tmp_path: Path) -> None:
    async with on(cluster, tmp_path) as service:
        job = await begun(service)
        cluster.kill_scheduler()
        await asyncio.sleep(2)
        cluster.start_scheduler()
        await check_ended(service, job)
        (coordinator,) = service.jobs.worker_pids
        assert coordinator


async def test_a_killed_coordinator_is_replaced(cluster: Cluster, tmp_path: Path) -> None:
    async with on(cluster, tmp_path) as service:
        job = await begun(service)
        (coordinator,) = service.jobs.worker_pids
        os.kill(coordinator, signal.SIGKILL)
        await check_ended(service, job)
        assert service.jobs.worker_pids != [coordinator]


def test_a_killed_service_goes_on_when_it_is_started_again(
    cluster: Cluster, tmp_path: Path
) -> None:
    settings = dask_settings(tmp_path, cluster)
    body = ndjson(pairs(COUNT))
    with serving(settings) as (server, client):
        job = client.post("/datasets/pairs/backfill", content=body).json()
        address = f"/jobs/{job['id']}"
        wait_for(lambda: client.get(address).json()["shards"]["done"] > 0)
        family = psutil.Process(server.pid).children(recursive=True)
        server.kill()
        server.wait()
        psutil.wait_procs(family, timeout=120)
    with serving(settings) as (_, client):
        wait_for(lambda: client.get(address).json()["state"] == "done", 180)
        check_counts(client.get(address).json())
        again = client.post("/datasets/pairs/backfill", content=body).json()
        wait_for(lambda: client.get(f"/jobs/{again['id']}").json()["state"] == "done", 180)
        counts = client.get(f"/jobs/{again['id']}").json()["counts"]
    assert (counts["already_stored"], counts["parses"]["done"]) == (COUNT, 0)
    check_rows(settings.store)


async def test_a_cancelled_job_leaves_the_workers_free(cluster: Cluster, tmp_path: Path) -> None:
    async with on(cluster, tmp_path, job_shard_segments=2_000) as service:
        job = await service.submit(ndjson(pairs(6_000)))
        await shards_done(service, job, 1)
        await service.client.delete(f"/jobs/{job['id']}")
        other = await service.backfill(ndjson(pairs(40, "Zoe")), "others")
        assert (other["state"], other["counts"]["stored"]) == ("done", 40)
        async with asyncio.timeout(60):  # the task that was at work may end and be counted later
            while len(service.rows()) != (cancelled := await service.job(job))["counts"]["stored"]:
                await asyncio.sleep(0.1)
        assert cancelled["state"] == "cancelled"
        assert cancelled["counts"]["stored"] < 6_000


ODD_TEXTS = """
import os, time
from service.parsers.udpipe.backend import UdpipeParser

def odd(self, items, limits, parse_many=UdpipeParser.parse_many):
    text = " ".join(item.text or "" for item in items)
    if "DEADLY" in text:
        os.kill(os.getpid(), 9)
    time.sleep(1_000 if "HANGING" in text else 10 if "SLOW" in text else 0)
    yield from parse_many(self, items, limits)

if UdpipeParser.parse_many.__name__ != "odd":  # dask may load this more than once
    UdpipeParser.parse_many = odd
"""


def odd_cluster(folder: Path, workers: int) -> Cluster:
    """A cluster whose workers die or take long over texts with certain words."""
    preload = folder / "odd.py"
    preload.write_text(ODD_TEXTS)
    return Cluster(folder / "cluster", workers=workers, arguments=("--preload", str(preload)))


async def test_fatal_text_is_dropped_by_name(tmp_path: Path) -> None:
    items = [*pairs(60), pair(60, second="A DEADLY text.")]
    body = ndjson(items, parser="udpipe/english-ewt")
    with odd_cluster(tmp_path, workers=2) as cluster:
        async with on(cluster, tmp_path) as service:
            job = await service.ended(await service.submit(body), 400)
            assert job["state"] == "done"
            assert job["counts"]["dropped"] == {"worker_died": 1}
            assert job["counts"]["stored"] == 60
            assert len(service.rows()) == 60


async def test_a_worker_that_does_not_see_the_store_fails_the_job_by_name(
    tmp_path: Path,
) -> None:
    elsewhere = {"PARSEBANK_STORE": str(tmp_path / "elsewhere")}
    with Cluster(tmp_path / "cluster", environment=elsewhere) as cluster:
        async with on(cluster, tmp_path) as service:
            job = await service.ended(await service.submit(ndjson(pairs(10))), 180)
            assert job["state"] == "failed"
            assert "does not see the service's store" in job["error"]["message"]
            assert "(on tcp://" in job["error"]["message"]
    assert not (tmp_path / "elsewhere").exists()


async def test_jobs_wait_for_a_scheduler_that_comes_later(
    tmp_path: Path, make_settings: Callable[..., Settings]
) -> None:
    cluster = Cluster(tmp_path / "cluster")
    async with on(cluster, tmp_path) as service:
        job = await service.submit(ndjson(pairs(10)))
        await asyncio.sleep(1)
        assert (await service.job(job))["state"] == "queued"
        with cluster:
            job = await service.ended(job, 180)
    assert job["counts"]["stored"] == 10


async def test_a_text_may_take_longer_than_a_lease_and_no_longer_than_its_own_limit(
    tmp_path: Path,
) -> None:
    items = [*pairs(30), pair(30, second="A SLOW text."), pair(31, second="A HANGING text.")]
    body = ndjson(items, parser="udpipe/english-ewt")
    with odd_cluster(tmp_path, workers=1) as cluster:
        cluster.wait_for_workers()
        changes = {"job_lease_seconds": 4, "job_text_seconds": 20, "job_shard_segments": 3_000}
        async with on(cluster, tmp_path, **changes) as service:
            job = await service.ended(await service.submit(body), 500)
            assert (job["state"], job["counts"]["stored"]) == ("done", 31), job
            assert job["counts"]["dropped"] == {"worker_died": 1}
            assert len(service.rows()) == 31
