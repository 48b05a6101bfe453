"""Request bodies: their size, their pace, and all of them together."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from service.middleware import body

from .asgi import Exchange

Serve = Callable[..., Any]

asyncio_module = pytest.mark.asyncio(loop_scope="module")


async def call(
    app: FastAPI, messages: list[dict[str, Any]], path: str = "/parse", **headers: str
) -> tuple[int, Any]:
    """Send a body message by message; after the last, nothing comes any more."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    exchange = Exchange(app, path, messages, given)
    await exchange.run()
    return exchange.status, json.loads(b"".join(exchange.bodies))


def piece(content: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": content, "more_body": more}


SPEC = b'{"spec": {"split": "dev", "lang": "en", "fields": ["text"]}}\n'
EXAMPLE = b'{"example": {"example_id": "1", "segments": [{"text": "It rained."}]}}\n'


async def test_body_that_pauses_too_long_is_408(serve, monkeypatch) -> None:
    monkeypatch.setattr(body, "PAUSE_SECONDS", 0.05)
    async with serve() as client:
        status, answer = await call(client.app, [piece(b'{"text": ')])
        assert status == 408
        assert answer["error_type"] == "request_timeout"


@pytest.mark.slow_cases
@pytest.mark.parametrize("sent", [[], [SPEC], [SPEC, EXAMPLE]])
async def test_upload_that_pauses_too_long_leaves_nothing(serve, monkeypatch, sent) -> None:
    monkeypatch.setattr(body, "PAUSE_SECONDS", 0.5)
    async with serve(job_workers=0) as client:
        pieces = [piece(line) for line in sent]
        headers = {"content_type": "application/x-ndjson"}
        for path in ("/datasets/d/backfill", "/datasets/d/backfill?dry_run=true"):
            status, answer = await call(client.app, list(pieces), path=path, **headers)
            assert (status, answer["error_type"]) == (408, "request_timeout")
        assert (await client.get("/jobs")).json() == []
        state = client.app.state.services.settings.state_dir
        assert [found for found in state.rglob("*") if found.suffix == ".ndjson"] == []
        whole = [*pieces, piece(b"".join([SPEC, EXAMPLE][len(sent) :]), more=False)]
        assert (await call(client.app, whole, path="/datasets/d/backfill", **headers))[0] == 202


async def test_an_upload_may_be_larger_than_other_bodies(serve: Serve) -> None:
    async with serve(max_body_bytes=1024, job_workers=0) as client:
        pieces = [piece(SPEC), *(piece(EXAMPLE.replace(b'"1"', b'"%d"' % n)) for n in range(40))]
        headers = {"content_type": "application/x-ndjson"}
        whole = [*pieces, piece(b"", more=False)]
        assert (await call(client.app, whole, path="/datasets/d/backfill", **headers))[0] == 202


async def test_concurrent_bodies_share_a_limit(serve: Serve) -> None:
    async with serve(max_body_bytes=1024) as client:
        held = b'{"text": "' + b"x" * 990
        slow = [
            asyncio.create_task(call(client.app, [piece(held)])) for _ in range(body.BODIES_AT_ONCE)
        ]
        await asyncio.sleep(0.05)
        status, answer = await call(client.app, [piece(held)])
        assert (status, answer["error_type"]) == (429, "overloaded")
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        whole = [piece(held), piece(b'", "lang": "tlh"}', more=False)]
        assert (await call(client.app, whole))[1]["error_type"] == "unknown_language"


async def test_large_bodies_are_refused_before_they_are_read(serve: Serve) -> None:
    size = body.SMALL_BODY_BYTES * 2
    async with serve(max_body_bytes=size) as client:
        length = str(size)
        held = [
            asyncio.create_task(call(client.app, [], content_length=length))
            for _ in range(body.BODIES_AT_ONCE)
        ]
        await asyncio.sleep(0.05)
        status, answer = await call(client.app, [], content_length=length)
        assert (status, answer["error_type"]) == (429, "overloaded")
        # Other requests need not wait for them.
        assert (await client.post("/parse", json={"text": "a", "lang": "tlh"})).status_code == 422
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)
        whole = [piece(b'{"text": "' + b" " * (size - 27) + b'", "lang": "tlh"}', more=False)]
        answered = await call(client.app, whole, content_length=length)
        assert answered[1]["error_type"] == "unknown_language"


@pytest.mark.parametrize("length", [1025, 10**30])
async def test_a_declared_length_over_the_limit_is_refused_unread(serve, length) -> None:
    async with serve(max_body_bytes=1024) as client:
        status, answer = await call(client.app, [], content_length=str(length))
        assert status == 413
        assert answer["error_type"] == "request_entity_too_large"
        assert answer["detail"] == {"limit": 1024}


async def test_both_ways_to_exceed_the_limit_have_the_same_answer(serve: Serve) -> None:
    async with serve(max_body_bytes=1024) as client:
        pieces = [piece(b'{"text": "'), piece(b"x" * 1024, more=False)]
        chunked = await call(client.app, pieces)
        declared = await call(client.app, [], content_length="1034")
        assert chunked == declared


@asyncio_module
async def test_an_encoded_body_is_refused_on_every_route(client: httpx.AsyncClient) -> None:
    headers = {"Content-Encoding": "gzip"}
    for path in ("/parse", "/datasets/d/backfill", "/api/process"):
        answer = await client.post(path, content=b"\x1f\x8b", headers=headers)
        assert answer.status_code == 422, path
        assert "gzip" in answer.json()["message"]
    plain = {"Content-Encoding": "identity"}
    assert (await client.post("/parse", json={"text": "Yes."}, headers=plain)).status_code == 200
