"""Readiness means that a parse would succeed; what stands against it is named."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from service import readiness
from service.security.keys import KeyFile

Serve = Callable[..., Any]


@pytest.fixture(autouse=True)
def _fresh_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "FRESH_SECONDS", 0.0)


async def ready(client: httpx.AsyncClient) -> dict[str, Any]:
    """What was found, or the faults."""
    answer = await client.get("/health/ready")
    if answer.status_code == 200:
        return {"ok": answer.json()["checks"]}
    assert answer.status_code == 503
    body = answer.json()
    assert body["error_type"] == "not_ready"
    for name, reason in body["detail"]["checks"].items():
        assert f"{name}: {reason}" in body["message"]
    return dict(body["detail"]["checks"])


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something has happened."""
    for _ in range(12_000):
        if condition():
            return
        await asyncio.sleep(0.005)
    pytest.fail("it did not happen")


async def test_a_ready_service_has_parsed_a_word(serve, monkeypatch) -> None:
    monkeypatch.setattr(readiness, "FRESH_SECONDS", 60.0)
    async with serve(workers=1) as client:
        answers = await asyncio.gather(*(client.get("/health/ready") for _ in range(50)))
        assert [answer.status_code for answer in answers] == [200] * 50
        checks = answers[0].json()["checks"]
        assert set(checks) == {"store", "disk", "jobs", "parser"}
        assert checks["parser"] == "parsebank/english"
        # One verdict for all who ask within its time.
        (stats,) = client.app.state.services.pools.stats.values()
        assert stats.texts == 1
        assert client.app.state.services.pipeline.counts == {}

        client.app.state.services.stopping.set()
        stopping = await client.get("/health/ready")
        assert stopping.status_code == 503
        assert stopping.json()["detail"]["checks"] == {"service": "stopping"}
        assert (await client.get("/health/live")).status_code == 200


async def test_parts_out_of_order_are_named_and_come_back(
    serve: Serve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store = tmp_path / "store"
    quick = {"refresh_seconds": 0, "commit_seconds": 0.01}
    async with serve(workers=1, job_workers=0, **quick) as client:
        await client.post("/parse", json={"text": "Make a table."})
        assert "ok" in await ready(client)

        log = store / "parses" / "_delta_log"
        await asyncio.to_thread(client.app.state.services.store.flush)
        broken = log / "00000000000000000002.json"
        broken.write_text("no action of Delta Lake")
        assert set(await ready(client)) == {"store"}
        assert set(await ready(client)) == {"store"}
        assert capsys.readouterr().err.count(" not ready ") == 1
        broken.unlink()

        with monkeypatch.context() as patched:
            patched.setattr(readiness, "LEAST_FREE_BYTES", 1 << 60)
            faults = await ready(client)
        assert set(faults) == {"disk"}
        assert str(store) in faults["disk"]

        with sqlite3.connect(store / "state" / "jobs.sqlite") as database:
            database.execute("ALTER TABLE jobs RENAME TO away")
        assert set(await ready(client)) == {"jobs"}
        with sqlite3.connect(store / "state" / "jobs.sqlite") as database:
            database.execute("ALTER TABLE away RENAME TO jobs")

        assert "ok" in await ready(client)


@pytest.mark.slow
async def test_readiness_hides_its_reasons_from_untrusted_callers(serve, tmp_path) -> None:
    secret, _ = KeyFile(tmp_path / "keys.json").add("ada", role="read")
    by_key = {"X-API-Key": secret}
    by_proxy = {"X-Forwarded-For": "127.0.0.1"}
    keyed = {"keys_file": tmp_path / "keys.json"}
    cases: list[tuple[dict[str, Any], list[tuple[dict[str, str], str, bool]]]] = [
        (
            {},
            [
                ({}, "127.0.0.1", True),
                ({}, "::1", True),
                ({}, "192.0.2.1", False),
                (by_proxy, "127.0.0.1", False),
            ],
        ),
        (
            keyed,
            [
                (by_key, "192.0.2.1", True),
                ({}, "127.0.0.1", False),
                ({"X-API-Key": "pb_x"}, "127.0.0.1", False),
            ],
        ),
    ]
    for fields, callers in cases:
        async with serve(workers=1, job_workers=0, **fields) as client:
            for headers, address, trusted in callers:
                await check_caller(client.app, tmp_path, headers, address, trusted=trusted)


async def check_caller(
    app: FastAPI, tmp_path: Path, headers: dict[str, str], address: str, *, trusted: bool
) -> None:
    """Ask a ready service, and one whose state folder is gone, as this caller."""
    async with asked_from(app, address) as asking:
        well = await asking.get("/health/ready", headers=headers)
        assert well.status_code == 200
        assert (str(tmp_path) in well.text) == trusted
        assert (well.json()["checks"] != {}) == trusted
        state = app.state.services.settings.state_dir
        state.rename(tmp_path / "away")
        state.write_text("a file where the folder was")
        ill = await asking.get("/health/ready", headers=headers)
        state.unlink()
        (tmp_path / "away").rename(state)
    assert ill.status_code == 503
    checks = ill.json()["detail"]["checks"]
    assert {"disk"} <= set(checks) <= {"disk", "jobs"}
    assert "disk" in ill.json()["message"]
    assert (set(checks.values()) == {"out of order"}) == (not trusted)
    if not trusted:
        assert str(tmp_path) not in ill.text


def asked_from(app: FastAPI, address: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, client=(address, 1))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=240)


async def test_a_damaged_model_is_named_and_a_mended_one_is_taken(serve, tmp_path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    model = models / "english-mine.udpipe"
    model.write_bytes(b"garbage")
    chosen = {"en": "udpipe/english-mine"}
    async with serve(workers=1, models_dir=models, parsers=chosen) as client:
        faults = await ready(client)
        assert set(faults) == {"parser"}
        assert "english-mine" in faults["parser"]
        bundled = Path(readiness.__file__).parent / "resources" / "models" / "english-ewt.udpipe"
        model.write_bytes(bundled.read_bytes())
        # Loading it may take longer than one verdict.
        for _ in range(10):
            if "ok" in (found := await ready(client)):
                break
        assert found["ok"]["parser"] == "udpipe/english-mine"


@pytest.mark.slow
async def test_a_full_queue_is_busy_not_broken(serve: Serve) -> None:
    async with serve(workers=1, max_queued_words=1_800) as client:
        assert "ok" in await ready(client)
        (pool,) = client.app.state.services.pools.running()

        async def post(texts: int, waiting: int) -> asyncio.Task[httpx.Response]:
            long = {"texts": [f"{n} " + "word " * 899 for n in range(texts)], "mode": "sentence"}
            sent = asyncio.create_task(client.post("/parse", json=long))
            await until(lambda: pool.queue.words == waiting)
            return sent

        # One text is parsed for half a second, and the queue is full of the others.
        parsing = [await post(2, waiting=900), await post(1, waiting=1_800)]
        verdict = await ready(client)
        if pool.queue.words == 1_800:
            assert verdict["ok"]["parser"] == "parsebank/english, busy"
        assert "ok" in verdict
        await asyncio.gather(*parsing)
