"""A model's workers while all is well: streams, turns, counts. One pool for all tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import psutil
import pytest
import pytest_asyncio

from service.parsers import ParseInput, find_parser, identify
from service.settings import Settings
from service.workers.memory import shared_bytes
from service.workers.pool import WorkerPool
from syntax import Parse

from .parser_processes import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHORT = ParseInput("raw", text="It works. Does it?")
# Half a second of parsing: the parser is quadratic.
LONG = ParseInput("sentence", text="word " * 1000)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[WorkerPool]:
    settings = Settings(store="unused", workers=2)
    model = find_parser(settings, "udpipe/english-ewt")
    started = WorkerPool(model, identify(model).fingerprint, settings)
    await started.start()
    yield started
    await started.stop()


def later(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_streamed_texts_come_as_they_finish(running: WorkerPool) -> None:
    async with aclosing(running.stream([LONG, SHORT, SHORT], later(30))) as answers:
        found = [answer async for answer in answers]
    assert [position for position, _ in found] == [1, 2, 0]
    assert all(isinstance(outcome, Parse) for _, outcome in found)


@pytest.mark.slow
async def test_a_cancelled_request_takes_its_texts_out_of_the_queue(running: WorkerPool) -> None:
    before = running.stats.texts
    parsing = asyncio.create_task(running.parse([LONG] * 100, later(30)))
    await until(lambda: running.busy == 2)
    parsing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await parsing
    assert running.queue.words == running.queue.texts == 0
    assert isinstance((await running.parse([SHORT], later(30)))[0], Parse)
    await until(lambda: running.is_idle)
    assert running.stats.texts - before == 3


async def test_single_text_overtakes_a_large_request(running: WorkerPool) -> None:
    async with aclosing(running.stream([SHORT] * 5000, later(60))) as large:
        await anext(large)
        await running.parse([SHORT], later(30))
        assert running.queue.texts > 0
    await until(lambda: running.is_idle)


async def test_workers_share_the_models_memory(running: WorkerPool) -> None:
    processes = [psutil.Process(pid) for pid in running.pids]
    own = [process.memory_full_info().uss for process in processes]
    assert len(own) == 3
    assert max(own[1:]) < 20e6
    assert 10e6 < shared_bytes(running.pids) < sum(p.memory_info().rss for p in processes)
