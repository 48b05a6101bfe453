"""Parser processes: how they start, die, and are replaced."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from service.parsers import Limits, ParseInput, find_parser, identify
from service.settings import Settings
from service.workers.pool import WorkerPool
from service.workers.process import ForkServer, start_ahead
from syntax import Parse
from syntax.errors import (
    ModelLoadError,
)

from .parser_processes import children, fork_server, workers

SHORT = ParseInput("raw", text="It works. Does it?")


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


@pytest.mark.slow
async def test_load_error_tells_how_the_process_ended() -> None:
    model = find_parser(Settings(store="unused"), "udpipe/english-ewt")
    crashing = replace(model, parts=("no path",))
    with pytest.raises(ModelLoadError, match="its process ended with exit code 1; check the file"):
        await ForkServer.start(crashing, Limits(), "cpu", 300)
    with pytest.raises(ModelLoadError, match=r"took over 0\.001 s; raise model_load_seconds"):
        await ForkServer.start(model, Limits(), "cpu", 0.001)


@pytest.mark.slow
async def test_a_process_that_started_ahead_loads_the_first_model_if_it_lives() -> None:
    other = threading.Thread(target=start_ahead)  # Linux would end the process with the thread
    other.start()
    other.join()
    assert children() == []
    for lives in (True, False):
        start_ahead()
        start_ahead()
        ahead = fork_server()
        if not lives:
            ahead.kill()
            ahead.wait()
        async with pool(workers=1) as running:
            (outcome,) = await running.parse([SHORT], later(30))
            assert isinstance(outcome, Parse)
            assert (fork_server().pid == ahead.pid) == lives


def later(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_idle_worker_death_loses_no_text() -> None:
    async with pool() as running:
        for process in workers():
            process.kill()
        await asyncio.sleep(0.1)
        outcomes = await running.parse([SHORT] * 20, later(30))
    assert all(isinstance(outcome, Parse) for outcome in outcomes)


@pytest.mark.slow
async def test_workers_are_replaced_after_so_many_texts() -> None:
    texts = [f"This is number {number}." for number in range(100)]
    async with pool(worker_max_texts=20, batch_words=20) as running:
        before = set(running.pids)
        outcomes = await running.parse([ParseInput("raw", text=text) for text in texts], later(30))
        assert [outcome.text for outcome in outcomes if isinstance(outcome, Parse)] == texts
        assert running.stats.replaced == {"recycled_texts": running.stats.replaced.total()}
        assert running.stats.replaced.total() >= 2
        assert len(set(running.pids) & before) == 1, "the process that has the model remains"


@pytest.mark.slow
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
