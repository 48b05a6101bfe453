"""Callers that leave before their answer: their texts leave the queue, those of others stay."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from fastapi import FastAPI

from service.errors import CLIENT_LEFT

from .asgi import Exchange
from .serving import served

Serve = Callable[..., Any]

TEXTS = 200
FORM = {"content-type": "application/x-www-form-urlencoded"}


def texts(who: str) -> list[str]:
    return [f"{who} says in text {n} that it rained{' and rained' * 20}." for n in range(TEXTS)]


def examples(who: str) -> dict[str, Any]:
    return {"examples": [{"segments": [{"text": text}]} for text in texts(who)]}


def form(who: str) -> bytes:
    return urlencode({"data": "\n".join(texts(who)), "tokenizer": "presegmented"}).encode()


REQUESTS: dict[str, tuple[str, Any, dict[str, str]]] = {
    "json": ("/parse", {"texts": texts("Anna")}, {}),
    "conllu": ("/parse?format=conllu", {"texts": texts("Berta")}, {}),
    "arrow": ("/parse?format=arrow", {"texts": texts("Clara")}, {}),
    "ndjson": ("/parse?format=ndjson", {"texts": texts("Dora")}, {}),
    "features": ("/features", examples("Emma"), {}),
    "lindat": ("/api/process", form("Frida"), FORM),
}


async def queued(app: FastAPI) -> Any:
    """The pool of the parser, once there are texts that wait for it."""
    while True:
        for pool in app.state.services.pools.running():
            if pool.queue.texts:
                return pool
        await asyncio.sleep(0.005)


@pytest.mark.slow_cases
@pytest.mark.parametrize("shape", REQUESTS)
async def test_disconnect_cancels_queued_texts(serve: Serve, shape: str) -> None:
    target, body, headers = REQUESTS[shape]
    async with serve(workers=1, job_workers=0, request_deadline_seconds=300) as client:
        exchange = Exchange(client.app, target, body, headers)
        asking = asyncio.create_task(exchange.run())
        pool = await queued(client.app)
        exchange.leave()
        await asking
        assert pool.queue.texts == 0
        while not pool.is_idle:
            await asyncio.sleep(0.01)
        assert pool.stats.texts < TEXTS
        if shape != "ndjson":  # its first lines may be out
            assert exchange.status == CLIENT_LEFT
            assert exchange.bodies == []


@pytest.mark.slow
async def test_disconnect_does_not_affect_other_callers(serve: Serve) -> None:
    async with serve(workers=1, job_workers=0, request_deadline_seconds=300) as client:
        leaving, staying = (Exchange(client.app, *REQUESTS["json"]) for _ in range(2))
        asking = [asyncio.create_task(exchange.run()) for exchange in (leaving, staying)]
        await queued(client.app)
        leaving.leave()
        await asyncio.gather(*asking)
        assert (leaving.status, staying.status) == (CLIENT_LEFT, 200)
        items = json.loads(b"".join(staying.bodies))["items"]
        assert [item["sentences"] != [] for item in items] == [True] * TEXTS


@pytest.mark.slow
async def test_disconnect_keeps_finished_parses(serve: Serve) -> None:
    async with serve(workers=1, job_workers=0, request_deadline_seconds=300) as client:
        assert (await client.post("/parse", json={"text": "It rained."})).status_code == 200
        exchange = Exchange(client.app, *REQUESTS["json"])
        asking = asyncio.create_task(exchange.run())
        pool = await queued(client.app)
        while pool.stats.texts < 20:
            await asyncio.sleep(0.005)
        exchange.leave()
        await asking
        assert exchange.status == CLIENT_LEFT
        again = await client.post("/parse", json=REQUESTS["json"][1], timeout=300)
        assert sum(item["cached"] for item in again.json()["items"]) >= 10


async def test_disconnect_during_the_body_is_not_an_error(serve: Serve) -> None:
    async with serve(job_workers=0) as client:
        exchange = Exchange(client.app, "/api/process", [], FORM)
        exchange.leave()
        await exchange.run()
        assert exchange.status == CLIENT_LEFT


@pytest.mark.slow
def test_a_closed_connection_is_noticed(tmp_path: Path) -> None:
    body = json.dumps({"texts": texts("Greta")}).encode()
    head = (
        "POST /parse HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    with served(tmp_path, request_deadline_seconds="300") as service, service.client() as client:
        assert client.post("/models/en/load").status_code == 200
        with socket.create_connection(("127.0.0.1", client.base_url.port), timeout=240) as wire:
            wire.sendall(head + body)
            while 'parsebank_queued_texts{parser="udpipe/english-ewt"} 0' in metrics(client):
                time.sleep(0.005)
        while 'status="499"' not in metrics(client):
            assert 'route="/parse",status="200"' not in metrics(client)
            time.sleep(0.01)


def metrics(client: Any) -> str:
    return client.get("/metrics").text
