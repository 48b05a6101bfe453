"""Parser processes: deadlines, deaths, overload, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from service.parsers import Limits, ParseInput, find_parser, identify
from service.settings import Settings
from service.workers.pool import WorkerPool
from service.workers.process import ForkServer
from syntax import Parse
from syntax.errors import (
    DeadlineError,
    ModelLoadError,
    OverloadedError,
    SpecError,
    WorkerDiedError,
)

from .parser_processes import children, fork_server, until, workers

SHORT = ParseInput("raw", text="It works. Does it?")
# Half a second of parsing: the parser is quadratic.
LONG = ParseInput("sentence", text="word " * 1000)
# Five seconds.
HUGE = ParseInput("sentence", text="word " * 3000)


@asynccontextmanager
async def pool(**fields: Any) -> AsyncIterator[WorkerPool]:
    settings = Settings(**{"store": "unused", "workers": 2, **fields})
    model = find_parser(settings, "udpipe/english-ewt")
    started = WorkerPool(model, identify(model).fingerprint, settings)
    await started.start()
    try:
        yield started
    finally:
        await started.stop()


async def test_load_error_tells_how_the_process_ended() -> None:
    model = find_parser(Settings(store="unused"), "udpipe/english-ewt")
    crashing = replace(model, parts=("no path",))
    with pytest.raises(ModelLoadError, match="its process ended with exit code 1; check the file"):
        await ForkServer.start(crashing, Limits(), "cpu", 300)
    with pytest.raises(ModelLoadError, match=r"took over 0\.001 s; raise model_load_seconds"):
        await ForkServer.start(model, Limits(), "cpu", 0.001)


def later(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


@pytest.mark.slow
async def test_a_worker_past_the_deadline_is_killed_and_only_its_text_fails() -> None:
    async with pool(max_words_per_sentence=5_000) as running:
        before = {process.pid for process in workers()}
        slow = running.parse([HUGE, SHORT, SHORT], later(0.2))
        quick = running.parse([SHORT] * 30, later(30))
        slow_outcomes, quick_outcomes = await asyncio.gather(slow, quick)
        await until(lambda: len(before - {process.pid for process in workers()}) == 1)
        await until(lambda: len(workers()) == 2)
        after = {process.pid for process in workers()}
        again = await running.parse([SHORT], later(30))
    assert isinstance(slow_outcomes[0], DeadlineError)
    assert all(isinstance(outcome, Parse) for outcome in quick_outcomes)
    assert len(before - after) == 1
    assert running.stats.replaced == {"deadline": 1}
    assert isinstance(again[0], Parse)


async def test_idle_worker_death_loses_no_text() -> None:
    async with pool() as running:
        for process in workers():
            process.kill()
        await asyncio.sleep(0.1)
        outcomes = await running.parse([SHORT] * 20, later(30))
    assert all(isinstance(outcome, Parse) for outcome in outcomes)


async def test_a_full_queue_refuses_at_once_and_takes_nothing() -> None:
    async with pool(max_queued_words=2_004, workers=1) as running:
        parsing = asyncio.create_task(running.parse([LONG], later(30)))
        await asyncio.sleep(0.05)
        fitting = asyncio.create_task(running.parse([SHORT], later(30)))
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError) as caught:
            await running.parse([LONG, LONG, SHORT], later(30))
        assert caught.value.detail["retry_after"] >= 1
        assert isinstance((await parsing)[0], Parse)
        assert isinstance((await fitting)[0], Parse)
        with pytest.raises(SpecError, match="max_queued_words"):
            await running.parse([LONG] * 3, later(30))
        assert running.queue.words == 0


async def test_stopping_a_pool_fails_waiting_texts_and_leaves_no_process() -> None:
    async with pool(workers=1) as running:
        parsing = asyncio.create_task(running.parse([LONG, LONG, SHORT], later(30)))
        await asyncio.sleep(0.05)
    outcomes = await parsing
    assert all(isinstance(outcome, WorkerDiedError) for outcome in outcomes)
    assert children() == []


async def test_workers_are_replaced_after_so_many_texts() -> None:
    texts = [f"This is number {number}." for number in range(100)]
    async with pool(worker_max_texts=20, batch_words=20) as running:
        before = set(running.pids)
        outcomes = await running.parse([ParseInput("raw", text=text) for text in texts], later(30))
        assert [outcome.text for outcome in outcomes if isinstance(outcome, Parse)] == texts
        assert running.stats.replaced == {"recycled_texts": running.stats.replaced.total()}
        assert running.stats.replaced.total() >= 2
        assert len(set(running.pids) & before) == 1, "the process that has the model remains"


async def test_a_worker_that_has_grown_is_replaced() -> None:
    large = ParseInput("raw", text="It works. Does it? " * 1_500)
    async with pool(workers=1, worker_max_growth_mb=1) as running:
        for item in (SHORT, large, SHORT):
            assert isinstance((await running.parse([item], later(30)))[0], Parse)
        assert running.stats.replaced["recycled_memory"] >= 1


async def test_workers_ignore_signals_to_the_group() -> None:
    async with pool(workers=1) as running:
        assert os.getpgid(fork_server().pid) != os.getpgid(0)
        for process in children():
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)
        assert isinstance((await running.parse([SHORT], later(30)))[0], Parse)
        assert running.stats.replaced.total() == 0
