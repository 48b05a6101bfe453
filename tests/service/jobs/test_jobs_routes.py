"""Jobs over HTTP: listed, followed, cancelled, tried again."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from service.jobs.database import database_url, open_database
from service.jobs.queue import JobQueue
from service.jobs.schemas import event_id, events
from service.jobs.staging import shard_path
from service.routes.streams import until
from syntax.errors import StoreBusyError

from .conftest import Running, Service, ndjson, pairs


def read_events(text: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Name, id and data of each event in a whole stream, which begins with the pause to wait."""
    first, *blocks = text.strip().split("\n\n")
    assert first == "retry: 2000"
    found = []
    for block in blocks:
        if not block.startswith(":"):
            fields = dict(line.split(": ", 1) for line in block.split("\n"))
            found.append((fields["event"], fields["id"], json.loads(fields["data"])))
    return found


async def test_jobs_are_listed_by_page_and_filter_and_unknown_ones_are_404(
    running: Running,
) -> None:
    async with running(job_workers=0) as service:
        jobs = [await service.submit(ndjson(pairs(1)), name) for name in ("a", "b", "a", "b")]
        ids = [job["id"] for job in reversed(jobs)]
        assert await service.listed() == ids
        assert await service.listed(dataset="b") == [ids[0], ids[2]]
        await service.client.delete(f"/jobs/{ids[1]}")
        assert await service.listed(state="cancelled") == [ids[1]]
        assert await service.listed(state=["cancelled", "queued"], dataset="a") == [ids[1], ids[3]]
        assert await service.listed(state="failed") == []
        page = await service.client.get(
            "/jobs", params={"limit": 3, "dataset": "a", "state": "queued"}
        )
        assert "link" not in page.headers
        pages = [await service.client.get("/jobs", params={"limit": 3})]
        pages.append(await service.client.get(pages[0].links["next"]["url"]))
        assert [job["id"] for page in pages for job in page.json()] == ids
        assert "link" not in pages[1].headers
        for method, path in (
            *(("GET", ""), ("DELETE", ""), ("POST", "/retry"), ("GET", "/events")),
        ):
            answer = await service.client.request(method, f"/jobs/nothing{path}")
            assert answer.status_code == 404
            assert answer.json()["error_type"] == "unknown_job"
        for strange in ("%00", "%F0%9F%92%A9", "a b"):
            assert (await service.client.get(f"/jobs/{strange}")).status_code == 404
        wrong = await service.client.get("/jobs", params={"state": "lost"})
        assert wrong.status_code == 422


async def test_a_queued_job_can_be_cancelled_and_then_not_tried_again(running: Running) -> None:
    async with running(job_workers=0) as service:
        job = await service.submit(ndjson(pairs(5)))
        goes_on = await service.client.post(f"/jobs/{job['id']}/retry")
        answer = await service.client.delete(f"/jobs/{job['id']}")
        assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
        assert service.store.datasets() == []
        assert list((service.settings.state_dir / "staging").iterdir()) == []
        cancelled = await service.client.post(f"/jobs/{job['id']}/retry")
        for refused, state in ((goes_on, "queued"), (cancelled, "cancelled")):
            assert (refused.status_code, refused.json()["error_type"]) == (409, "conflict")
            assert refused.json()["detail"]["state"] == state


@pytest.mark.slow
async def test_a_damaged_shard_fails_its_job_by_name_and_is_run_again_once_it_is_whole(
    running: Running,
) -> None:
    async with running(job_workers=0) as service:
        job = await service.submit(ndjson(pairs(60)))
    path = shard_path(service.settings.state_dir / "staging" / job["id"], 1)
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    async with running(job_workers=1) as service:
        job = await service.ended(job)
        assert job["state"] == "failed"
        assert job["shards"]["done"] == job["shards"]["total"] - 1
        assert (job["error"]["error_type"], job["error"]["shard"]) == ("staged_shard", 1)
        (failed,) = job["failed_shards"]
        assert (failed["number"], failed["tries"], failed["error_type"]) == (1, 1, "staged_shard")
        assert path.name in failed["message"]
        assert job["counts"]["stored"] == 60 - 14
        assert "failed_shards" not in (await service.client.get("/jobs")).json()[0]
        path.write_bytes(whole)
        answer = await service.client.post(f"/jobs/{job['id']}/retry")
        assert (answer.status_code, answer.json()["state"]) == (200, "running")
        assert answer.json()["shards"]["failed"] == 0
        job = await service.ended(answer.json())
        assert (job["state"], job["counts"]["stored"], job["error"]) == ("done", 60, None)
        assert [row[0] for row in service.rows()] == list(range(60))
        again = await service.client.post(f"/jobs/{job['id']}/retry")
        assert again.status_code == 409
    # A job that is done needs its upload no more.
    assert list((service.settings.state_dir / "staging").iterdir()) == []


def fail_all(service: Service, error: Exception) -> None:
    """Be a worker that fails every shard."""
    engine = open_database(database_url(service.settings))
    queue = JobQueue.of(engine, service.settings)
    while (shard := queue.claim("w")) is not None:
        queue.fail(shard, error)
    engine.dispose()


async def test_a_failed_job_whose_upload_is_gone_cannot_be_tried_again(running: Running) -> None:
    async with running(job_workers=0, job_retry_days=0.0) as service:
        job = await service.submit(ndjson(pairs(4)))
        fail_all(service, StoreBusyError("full"))
    async with running(job_workers=0, job_retry_days=0.0) as service:
        assert list((service.settings.state_dir / "staging").iterdir()) == []
        answer = await service.client.post(f"/jobs/{job['id']}/retry")
        assert (answer.status_code, answer.json()["error_type"]) == (409, "upload_gone")
        assert "send the backfill again" in answer.json()["message"]


@pytest.mark.slow
async def test_follow_ends_with_the_job(running: Running) -> None:
    async with running(job_workers=1) as service:
        job = await service.submit(ndjson(pairs(80, "Gus")))
        address = f"/jobs/{job['id']}/events"
        answer = await service.client.get(address)
        assert answer.headers["content-type"].startswith("text/event-stream")
        found = read_events(answer.text)
        assert {name for name, _, _ in found[:-1]} == {"progress"}
        assert len({event_id for _, event_id, _ in found[:-1]}) == len(found) - 1
        name, last, data = found[-1]
        assert (name, data) == ("end", await service.ended(job))
        again = await service.client.get(address, headers={"Last-Event-ID": last})
        assert (again.status_code, again.content) == (204, b"")
        older = await service.client.get(address, headers={"Last-Event-ID": found[0][1]})
        assert [name for name, _, _ in read_events(older.text)] == ["progress", "end"]


async def test_events_skip_up_to_last_event_id(running: Running) -> None:
    async with running(job_workers=0) as service:
        job = await service.jobs.get((await service.submit(ndjson(pairs(2))))["id"])
        stream = events(service.jobs.follow(job.id, keepalive_seconds=0.05), event_id(job))
        beginning = [await anext(stream) for _ in range(3)]
        assert beginning == ["retry: 2000\n\n", ": alive\n\n", ": alive\n\n"]
        await service.client.delete(f"/jobs/{job.id}")
        rest = [event async for event in stream if event != ": alive\n\n"]
        assert [event.partition("\n")[0] for event in rest] == ["event: progress", "event: end"]


async def test_follow_stops_without_end_event_at_shutdown(running: Running) -> None:
    async with running(job_workers=0) as service:
        job = await service.submit(ndjson(pairs(2)))
        changes = until(service.stopping, service.jobs.follow(job["id"]))
        stream = events(changes, None)
        assert [await anext(stream) for _ in range(2)][1].startswith("event: progress")
        service.stopping.set()
        assert [event async for event in stream] == []
        answer = await service.client.get(f"/jobs/{job['id']}/events")
        assert "event: end" not in answer.text


async def test_requests_are_parsed_while_job_routes_wait_for_the_database(
    running: Running,
) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    async with running(job_workers=0) as service:
        path = service.settings.state_dir / "jobs.sqlite"
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            paths = ["/jobs", "/jobs", "/jobs", "/metrics"]
            waiting = [asyncio.create_task(service.client.get(path)) for path in paths]
            await asyncio.sleep(0.5)  # they wait now
            parsed = await service.client.post("/parse", json={"texts": ["A new text."]})
            assert parsed.status_code == 200
            assert not any(task.done() for task in waiting)
            database.execute("ROLLBACK")
        assert {answer.status_code for answer in await asyncio.gather(*waiting)} == {200}
