"""Parser processes: deadlines, deaths, overload, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from service.parsers import ModelFile, ParseInput, find_parser, identify
from service.settings import Settings
from service.workers.pool import WorkerPool
from service.workers.pools import WorkerPools
from syntax import Parse
from syntax.errors import DeadlineError, ModelLoadError, OverloadedError, WorkerDiedError

SHORT = ParseInput("raw", text="It works. Does it?")
# Half a second of parsing: the parser is quadratic.
LONG = ParseInput("sentence", text="word " * 1000)


@asynccontextmanager
async def pool(**fields: Any) -> AsyncIterator[WorkerPool]:
    settings = Settings(**{"store": "unused", "workers": 2, **fields})
    model = find_parser(settings, lang="en")
    started = WorkerPool(model, identify(model).fingerprint, settings)
    await started.start()
    try:
        yield started
    finally:
        await started.stop()


def later(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


def children() -> list[psutil.Process]:
    """Our descendants that are parser processes; a dead one has no command line."""
    found = psutil.Process().children(recursive=True)
    return [process for process in found if "service.workers.nursery" in _command(process)]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def workers() -> list[psutil.Process]:
    return [child for child in children() if child.ppid() != os.getpid()]


def nursery() -> psutil.Process:
    (process,) = (child for child in children() if child.ppid() == os.getpid())
    return process


async def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        await asyncio.sleep(0.02)


async def busy_worker() -> psutil.Process:
    """The worker that is parsing now, by its share of the processor."""
    before = {process: process.cpu_times().user for process in workers()}
    await asyncio.sleep(0.15)
    return max(before, key=lambda process: process.cpu_times().user - before[process])


async def test_texts_come_back_in_order() -> None:
    texts = [f"This is number {number}." for number in range(200)]
    items = [ParseInput("raw", text=text) for text in texts]
    async with pool() as running:
        outcomes = await running.parse(items, later(30))
    assert [outcome.text for outcome in outcomes if isinstance(outcome, Parse)] == texts


async def test_a_text_error_stays_with_its_text() -> None:
    items = [SHORT, ParseInput("sentence", text="word " * 1001), SHORT]
    async with pool() as running:
        outcomes = await running.parse(items, later(30))
    kinds = [type(outcome).__name__ for outcome in outcomes]
    assert kinds == ["Parse", "SentenceTooLongError", "Parse"]


async def test_a_worker_past_the_deadline_is_killed_and_only_its_text_fails() -> None:
    async with pool() as running:
        before = {process.pid for process in workers()}
        slow = running.parse([LONG, SHORT, SHORT], later(0.2))
        quick = running.parse([SHORT] * 30, later(30))
        slow_outcomes, quick_outcomes = await asyncio.gather(slow, quick)
        await until(lambda: len(workers()) == 2)
        after = {process.pid for process in workers()}
        again = await running.parse([SHORT], later(30))
    assert isinstance(slow_outcomes[0], DeadlineError)
    assert all(isinstance(outcome, Parse) for outcome in quick_outcomes)
    assert len(before - after) == 1
    assert running.replaced == 1
    assert isinstance(again[0], Parse)


async def test_texts_behind_a_killed_worker_are_parsed_by_another() -> None:
    async with pool(workers=1, batch_words=20_000) as running:
        doomed = asyncio.create_task(running.parse([LONG], later(0.3)))
        await asyncio.sleep(0.05)
        others = await running.parse([SHORT] * 5, later(30))
        (late,) = await doomed
    assert isinstance(late, DeadlineError)
    assert all(isinstance(outcome, Parse) for outcome in others)


async def test_a_text_whose_worker_is_killed_is_tried_again() -> None:
    async with pool() as running:
        parsing = asyncio.create_task(running.parse([LONG, SHORT, SHORT], later(30)))
        (await busy_worker()).kill()
        outcomes = await parsing
        assert all(isinstance(outcome, Parse) for outcome in outcomes)
        assert running.replaced == 1


async def test_a_text_that_kills_two_workers_is_given_up() -> None:
    item = ParseInput("sentence", text="word " * 3000)
    async with pool(max_words_per_sentence=5000) as running:
        parsing = asyncio.create_task(running.parse([item, SHORT], later(60)))
        first = await busy_worker()
        first.kill()
        await until(lambda: len(workers()) == 2 and first not in workers())
        (await busy_worker()).kill()
        outcomes = await parsing
    assert isinstance(outcomes[0], WorkerDiedError)
    assert isinstance(outcomes[1], Parse)


async def test_a_worker_that_dies_idle_costs_no_text() -> None:
    async with pool() as running:
        for process in workers():
            process.kill()
        await asyncio.sleep(0.1)
        outcomes = await running.parse([SHORT] * 20, later(30))
    assert all(isinstance(outcome, Parse) for outcome in outcomes)


async def test_a_killed_nursery_is_replaced() -> None:
    async with pool() as running:
        nursery().kill()
        await until(lambda: workers() == [] or all(not w.is_running() for w in workers()))
        outcomes = await running.parse([SHORT] * 3, later(30))
    assert all(isinstance(outcome, Parse) for outcome in outcomes)


async def test_a_full_queue_refuses_at_once_and_takes_nothing() -> None:
    async with pool(max_queued_words=1_600, workers=1) as running:
        parsing = asyncio.create_task(running.parse([LONG], later(30)))
        await asyncio.sleep(0.05)
        fitting = asyncio.create_task(running.parse([SHORT], later(30)))
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError) as caught:
            await running.parse([LONG, LONG], later(30))
        assert caught.value.detail["retry_after"] >= 1
        assert isinstance((await parsing)[0], Parse)
        assert isinstance((await fitting)[0], Parse)
        assert running.queue.chars == 0


async def test_stopping_leaves_no_process_and_fails_what_waits() -> None:
    async with pool(workers=1) as running:
        parsing = asyncio.create_task(running.parse([LONG, LONG, SHORT], later(30)))
        await asyncio.sleep(0.05)
    outcomes = await parsing
    assert all(isinstance(outcome, WorkerDiedError) for outcome in outcomes)
    assert children() == []


async def test_a_cancelled_request_leaves_the_pool_working() -> None:
    async with pool(workers=1) as running:
        parsing = asyncio.create_task(running.parse([LONG, SHORT], later(30)))
        await asyncio.sleep(0.05)
        parsing.cancel()
        assert isinstance((await running.parse([SHORT], later(30)))[0], Parse)


async def test_workers_share_the_models_memory() -> None:
    async with pool():
        own = [process.memory_full_info().uss for process in workers()]
    assert max(own) < 20e6


async def test_pools_load_each_model_once_and_drop_the_longest_unused(tmp_path: Path) -> None:
    source = find_parser(Settings(store="unused"), lang="en").path
    for name in ("german-a", "french-b"):
        shutil.copy(source, tmp_path / f"{name}.udpipe")
    settings = Settings(store="unused", models_dir=tmp_path, workers=1, model_memory_mb=2_048)
    pools = WorkerPools(settings)

    async def parse(lang: str) -> None:
        model = find_parser(settings, lang=lang)
        await pools.parse(model, identify(model).fingerprint, [SHORT], later(30))

    try:
        await asyncio.gather(parse("en"), parse("en"), parse("de"))
        assert len(pools.running()) == 2
        await parse("en")
        await parse("fr")
        assert [running.model.langs for running in pools.running()] == [("en",), ("fr",)]
        await until(lambda: len(children()) == 4)
    finally:
        await pools.stop()
    assert children() == []


async def test_a_model_that_cannot_be_loaded_is_tried_again_next_time(tmp_path: Path) -> None:
    path = tmp_path / "english-x.udpipe"
    path.write_bytes(b"garbage")
    model = ModelFile("udpipe.v1", "udpipe/english-x", path, ("en",))
    settings = Settings(store="unused", workers=1)
    pools = WorkerPools(settings)
    try:
        with pytest.raises(ModelLoadError):
            await pools.parse(model, identify(model).fingerprint, [SHORT], later(30))
        shutil.copy(find_parser(settings, lang="en").path, path)
        outcomes = await pools.parse(model, identify(model).fingerprint, [SHORT], later(30))
        assert isinstance(outcomes[0], Parse)
    finally:
        await pools.stop()


async def test_a_file_that_is_not_the_one_identified_is_refused() -> None:
    settings = Settings(store="unused", workers=1)
    pools = WorkerPools(settings)
    try:
        with pytest.raises(ModelLoadError, match="changed"):
            await pools.parse(find_parser(settings, lang="en"), "0" * 32, [SHORT], later(30))
    finally:
        await pools.stop()


async def test_a_slow_load_meets_the_deadline_and_goes_on() -> None:
    settings = Settings(store="unused", workers=1)
    model = find_parser(settings, lang="en")
    pools = WorkerPools(settings)
    try:
        fingerprint = identify(model).fingerprint
        with pytest.raises(DeadlineError, match="being loaded"):
            await pools.parse(model, fingerprint, [SHORT], later(0.01))
        outcomes = await pools.parse(model, fingerprint, [SHORT], later(30))
        assert isinstance(outcomes[0], Parse)
    finally:
        await pools.stop()


async def test_an_interrupt_of_the_group_does_not_end_the_workers() -> None:
    async with pool(workers=1) as running:
        assert os.getpgid(nursery().pid) != os.getpgid(0)
        nursery().send_signal(signal.SIGINT)
        assert isinstance((await running.parse([SHORT], later(30)))[0], Parse)
