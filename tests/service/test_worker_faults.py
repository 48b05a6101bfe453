"""The whole service while its parser processes are killed and its model's file is damaged.

Whatever happens, every accepted text is answered or failed by name, and no process remains.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from service.parsers import ParseInput, find_parser, identify
from service.settings import Settings
from service.workers.pools import WorkerPools
from syntax import Parse
from syntax.errors import WorkerDiedError

from .parser_processes import children, fork_server, is_alive, until, workers

Serve = Callable[..., Any]

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def no_orphans() -> Any:
    yield
    assert children() == []


class Killer:
    """Kills what it is given now and then, until it is stopped; remembers whom."""

    def __init__(self, victims: Callable[[], list[psutil.Process]], seconds: float) -> None:
        self.killed: set[int] = set()
        self._victims = victims
        self._seconds = seconds
        self._chance = random.Random(1)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        killing = asyncio.create_task(self._run())
        try:
            yield
        finally:
            killing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await killing

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._chance.uniform(0.5, 1.5) * self._seconds)
            if victims := self._victims():
                victim = self._chance.choice(victims)
                with contextlib.suppress(psutil.NoSuchProcess):
                    victim.kill()
                    self.killed.add(victim.pid)


async def ask(client: httpx.AsyncClient, number: int) -> list[str]:
    """Ask for some texts that no request has asked for; gives what each came to."""
    count = 1 + number % 7
    texts = [f"This is text {n} of request {number}. It is short." for n in range(count)]
    response = await client.post("/parse", json={"texts": texts, "store": False})
    assert response.status_code == 200, response.text
    items = response.json()["items"]
    assert len(items) == count
    for text, item in zip(texts, items, strict=True):
        assert "error" in item or item["text"] == text
    return [item["error"]["error_type"] if "error" in item else "parsed" for item in items]


async def ask_many(client: httpx.AsyncClient, requests: int) -> Counter[str]:
    """Many requests, thirty-two at a time."""
    gate = asyncio.Semaphore(32)

    async def one(number: int) -> list[str]:
        async with gate:
            return await ask(client, number)

    answers = await asyncio.gather(*map(one, range(requests)))
    return Counter(kind for kinds in answers for kind in kinds)


async def test_killed_workers_lose_no_answer(serve: Serve) -> None:
    killer = Killer(workers, seconds=0.1)
    async with serve() as client:
        await ask(client, 0)
        async with killer.at_work():
            found = await ask_many(client, 200)
        assert found.keys() <= {"parsed", "worker_died"}
        assert found.total() == sum(1 + number % 7 for number in range(200))
        # A text fails only when two workers die on it.
        assert found["parsed"] > found.total() * 0.9
        assert len(killer.killed) >= 3
        assert set(await ask(client, 1_000)) == {"parsed"}
        await until(lambda: len(workers()) == 2)
    assert not any(map(is_alive, killer.killed))


async def test_killed_fork_server_loses_no_answer(serve: Serve) -> None:
    async with serve() as client:
        await ask(client, 0)
        asking = asyncio.create_task(ask_many(client, 100))
        for _ in range(2):
            await asyncio.sleep(0.1)
            await until(lambda: len(workers()) == 2)
            fork_server().kill()
        found = await asking
        assert found.keys() <= {"parsed", "worker_died"}
        (stats,) = client.app.state.services.pools.stats.values()
        assert stats.fork_server_restarts == 2
        assert set(await ask(client, 1_000)) == {"parsed"}


async def test_texts_wait_for_a_fork_server_that_is_killed_as_it_loads(serve: Serve) -> None:
    async with serve() as client:
        await ask(client, 0)
        killed = {fork_server().pid}
        fork_server().kill()
        asking = asyncio.create_task(ask_many(client, 32))
        for _ in range(2):
            await until(
                lambda: any(c.ppid() == os.getpid() for c in children() if c.pid not in killed)
            )
            killed.add(fork_server().pid)
            fork_server().kill()
            await until(lambda: not any(map(is_alive, killed)))
        assert set(await asking) == {"parsed"}
        assert set(await ask(client, 1_000)) == {"parsed"}


async def test_a_damaged_model_is_named_and_taken_again_when_it_is_sound(
    serve: Serve, tmp_path: Path
) -> None:
    source = find_parser(Settings(store="unused"), "udpipe/english-ewt").path
    path = tmp_path / "models" / "english-x.udpipe"
    path.parent.mkdir()
    shutil.copy(source, path)
    async with serve(models_dir=path.parent) as client:
        assert set(await ask(client, 0)) == {"parsed"}
        sound = path.read_bytes()
        path.write_bytes(sound[: len(sound) // 2])
        # Those who lose their worker find no model to go on with; the next are refused at once.
        fork_server().kill()
        answers = [await client.post("/parse", json={"text": f"Text {n}."}) for n in range(3)]
        assert {answer.status_code for answer in answers} == {503}
        assert {answer.json()["error_type"] for answer in answers} == {"model_load"}
        path.write_bytes(sound)
        assert set(await ask(client, 1)) == {"parsed"}


async def test_texts_in_flight_fail_by_name_when_the_model_vanishes(tmp_path: Path) -> None:
    path = tmp_path / "english-x.udpipe"
    shutil.copy(find_parser(Settings(store="unused"), "udpipe/english-ewt").path, path)
    settings = Settings(store="unused", models_dir=tmp_path, workers=2)
    model = find_parser(settings, "english-x")
    pools = WorkerPools(settings)
    try:
        deadline = asyncio.get_running_loop().time() + 30
        fingerprint = identify(model).fingerprint
        await pools.load(model, fingerprint)
        items = [ParseInput("sentence", text="word " * 1000)] * 10
        parsing = asyncio.create_task(pools.parse(model, fingerprint, items, deadline))
        (pool,) = pools.running()
        await until(lambda: pool.busy == 2)
        path.write_bytes(b"garbage")
        fork_server().kill()
        outcomes = await parsing
        kinds = {type(outcome).__name__ for outcome in outcomes}
        assert kinds <= {"Parse", "ModelLoadError"}
        assert "ModelLoadError" in kinds
    finally:
        await pools.stop()


async def test_deadline_kills_the_worker_and_fails_one_text(
    serve: Serve,
) -> None:
    async with serve(max_words_per_sentence=10_000) as client:
        await ask_many(client, 64)  # the pool knows then how long so many words take
        before = {process.pid for process in workers()}
        body = {"text": "word " * 6_000, "mode": "sentence", "deadline_seconds": 1.0}
        late = asyncio.create_task(client.post("/parse", json=body))
        await asyncio.sleep(0.2)
        assert set(await ask(client, 1)) == {"parsed"}
        (item,) = (await late).json()["items"]
        assert item["error"]["error_type"] == "deadline"
        # On a slow machine the worker is given the more time.
        await until(lambda: len({process.pid for process in workers()} & before) == 1, 120)
        await until(lambda: len(workers()) == 2)
        assert set(await ask(client, 2)) == {"parsed"}


@asynccontextmanager
async def stanza_pools(data_dir: Path, **fields: Any) -> AsyncIterator[tuple[WorkerPools, Any]]:
    """Pools and a function that parses French texts with them."""
    settings = Settings(store="unused", models_dir=data_dir / "models" / "stanza", **fields)
    model = find_parser(settings, lang="fr")
    fingerprint = identify(model).fingerprint
    pools = WorkerPools(settings)

    async def parse(texts: list[str], seconds: float = 60.0) -> list[Any]:
        deadline = asyncio.get_running_loop().time() + seconds
        items = [ParseInput("raw", text=text) for text in texts]
        return await pools.parse(model, fingerprint, items, deadline)

    try:
        yield pools, parse
    finally:
        await pools.stop()


async def test_killed_bulk_worker_loses_no_text(data_dir: Path) -> None:
    pytest.importorskip("stanza")
    texts = [f"Le chat numéro {number} mange du pain au jardin." for number in range(24)]
    async with stanza_pools(data_dir, workers=2) as (pools, parse):
        await parse(texts[:1])
        (pool,) = pools.running()
        parsing = asyncio.create_task(parse(texts))
        await until(lambda: pool.busy == 2)
        workers()[0].kill()  # at once: the batches last a fraction of a second
        outcomes = await parsing
        assert [outcome.text for outcome in outcomes if isinstance(outcome, Parse)] == texts
        await until(lambda: pool.stats.replaced == {"died": 1})
        # A batch whose workers all die is failed by name, text by text.
        async with Killer(workers, seconds=0.02).at_work():
            outcomes = await parse(texts[:2])
        assert all(isinstance(outcome, Parse | WorkerDiedError) for outcome in outcomes)
        assert all(isinstance(outcome, Parse) for outcome in await parse(texts[:2]))
