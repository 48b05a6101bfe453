"""Pools by model: loaded when needed, unloaded for room or on request, drained at the end."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from service.parsers import ModelFile, ParseInput, find_parser, identify
from service.settings import Settings
from service.workers.memory import shared_bytes
from service.workers.pools import WorkerPools
from syntax import Parse
from syntax.errors import (
    ConflictError,
    DeadlineError,
    ModelLoadError,
    OverloadedError,
    WorkerDiedError,
)

from .parser_processes import children, until

SHORT = ParseInput("raw", text="It works. Does it?")
# Half a second of parsing: the parser is quadratic.
LONG = ParseInput("sentence", text="word " * 1000)


@asynccontextmanager
async def starting(**fields: Any) -> AsyncIterator[WorkerPools]:
    pools = WorkerPools(Settings(**{"store": "unused", "workers": 1, **fields}))
    try:
        yield pools
    finally:
        await pools.stop()
        assert children() == []


@pytest_asyncio.fixture
async def pools() -> AsyncIterator[WorkerPools]:
    """Pools of one worker for each model."""
    async with starting() as started:
        yield started


def later(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


def english() -> tuple[ModelFile, str]:
    """Model and fingerprint."""
    return named(find_parser(Settings(store="unused"), "udpipe/english-ewt"))


ENGLISH = "udpipe/english-ewt"


def named(model: ModelFile) -> tuple[ModelFile, str]:
    return model, identify(model).fingerprint


@pytest.fixture
def three(tmp_path: Path) -> list[tuple[ModelFile, str]]:
    """English, German and French, of equal size."""
    source, _ = english()
    for name in ("german-a", "french-b"):
        shutil.copy(source.path, tmp_path / f"{name}.udpipe")
    settings = Settings(store="unused", models_dir=tmp_path)
    return [named(find_parser(settings, name)) for name in (ENGLISH, "german-a", "french-b")]


def langs(pools: WorkerPools) -> list[str]:
    return [running.model.langs[0] for running in pools.running()]


@pytest.mark.slow
async def test_models_are_loaded_once_and_the_longest_unused_makes_room(
    three: list[tuple[ModelFile, str]],
) -> None:
    en, de, fr = three
    async with starting() as pools:
        await pools.load(*en)
        size = shared_bytes(pools.running()[0].pids)
    # Room for one and a half loaded models, and one that is not measured yet.
    room = 1.5 * size + (100 << 20) + 4 * en[0].size
    async with starting(model_memory_mb=round(room / 2**20)) as pools:
        asking = [pools.parse(*en, [SHORT], later(30)) for _ in range(2)]
        await asyncio.gather(*asking)
        await pools.parse(*de, [SHORT], later(30))
        assert langs(pools) == ["en", "de"]
        await pools.parse(*en, [SHORT], later(30))
        await pools.parse(*fr, [SHORT], later(30))
        assert langs(pools) == ["en", "fr"]
        assert len(children()) == 4
        assert {name: stats.loads for name, stats in pools.stats.items()} == dict.fromkeys(
            (model.name for model, _ in three), 1
        )


@pytest.mark.slow
async def test_a_busy_model_is_not_unloaded_for_another(
    three: list[tuple[ModelFile, str]],
) -> None:
    en, de, _ = three
    async with starting(model_memory_mb=1) as pools:
        parsing = asyncio.create_task(pools.parse(*en, [LONG, SHORT], later(30)))
        await until(lambda: bool(pools.running()) and pools.running()[0].busy == 1)
        with pytest.raises(OverloadedError, match="model_memory_mb"):
            await pools.load(*de)
        assert all(isinstance(outcome, Parse) for outcome in await parsing)
        await pools.load(*de)
        assert langs(pools) == ["de"]


@pytest.mark.slow
async def test_a_model_is_loaded_and_unloaded_on_request(pools: WorkerPools) -> None:
    model, fingerprint = english()
    assert not await pools.unload(ENGLISH)
    loading = asyncio.create_task(pools.load(model, fingerprint))
    await until(lambda: len(children()) == 1)
    with pytest.raises(ConflictError, match="loading"):
        await pools.unload(ENGLISH)
    await loading
    assert len(children()) == 2
    assert await pools.unload(ENGLISH)
    assert children() == []
    await pools.load(model, fingerprint)
    assert await pools.unload(fingerprint)
    assert not await pools.unload(fingerprint)
    assert pools.stats[model.name].loads == 2


@pytest.mark.slow
async def test_a_replaced_file_gets_new_workers_and_the_old_ones_go(tmp_path: Path) -> None:
    source, _ = english()
    path = tmp_path / "english-x.udpipe"
    shutil.copy(source.path, path)
    model = ModelFile("udpipe.v1", "udpipe/english-x", path, ("en",))
    async with starting() as pools:
        before = identify(model).fingerprint
        await pools.load(model, before)
        path.write_bytes(path.read_bytes() + b"\0")
        with pytest.raises(ModelLoadError, match="changed"):
            await pools.load(model, "0" * 32)
        after = identify(model).fingerprint
        assert after != before
        await pools.parse(model, after, [SHORT], later(30))
        assert [running.fingerprint for running in pools.running()] == [after]


async def test_probe_overtakes_the_queue(pools: WorkerPools) -> None:
    await pools.probe(*english(), later(30))
    parsing = asyncio.create_task(pools.parse(*english(), [LONG] * 20, later(30)))
    (pool,) = pools.running()
    await until(lambda: pool.busy == 1)
    await pools.probe(*english(), later(30))
    assert pool.queue.texts > 10
    with pytest.raises(ConflictError, match="has texts to parse"):
        await pools.unload(ENGLISH)
    parsing.cancel()


async def test_stream_yields_what_parse_returns_and_keeps_its_model(pools: WorkerPools) -> None:
    items = [ParseInput("raw", text=f"This is number {number}.") for number in range(20)]
    async with aclosing(pools.stream(*english(), items, later(30))) as answers:
        found = dict([await anext(answers)])
        with pytest.raises(ConflictError):
            await pools.unload(ENGLISH)
        found |= dict([answer async for answer in answers])
    assert [found[number] for number in range(20)] == await pools.parse(
        *english(), items, later(30)
    )
    async with aclosing(pools.stream(*english(), [], later(30))) as answers:
        assert [answer async for answer in answers] == []
    assert await pools.unload(ENGLISH)


async def test_a_probe_of_a_full_queue_says_so() -> None:
    async with starting(max_queued_words=1_000) as pools:
        await pools.load(*english())
        (pool,) = pools.running()
        first = asyncio.create_task(pools.parse(*english(), [LONG], later(30)))
        await until(lambda: pool.busy == 1)
        second = asyncio.create_task(pools.parse(*english(), [LONG], later(30)))
        await until(lambda: pool.queue.words == 1_000)
        with pytest.raises(OverloadedError):
            await pools.probe(*english(), later(30))
        for asking in (first, second):
            asking.cancel()


@pytest.mark.slow
async def test_drain_finishes_accepted_texts_and_refuses_new_ones(pools: WorkerPools) -> None:
    # Not even loaded yet: it was accepted all the same.
    parsing = asyncio.create_task(pools.parse(*english(), [LONG, SHORT], later(30)))
    await asyncio.sleep(0)
    draining = asyncio.create_task(pools.drain(30.0))
    await asyncio.sleep(0)
    with pytest.raises(OverloadedError, match="about to stop"):
        await pools.parse(*english(), [SHORT], later(30))
    assert all(isinstance(outcome, Parse) for outcome in await parsing)
    await draining
    assert children() == []


@pytest.mark.slow
async def test_drain_stops_after_its_timeout(pools: WorkerPools) -> None:
    await pools.load(*english())
    parsing = asyncio.create_task(pools.parse(*english(), [LONG] * 50, later(30)))
    await asyncio.sleep(0)
    await pools.drain(0.2)
    outcomes = await parsing
    assert len(outcomes) == 50
    assert isinstance(outcomes[-1], WorkerDiedError)
    assert children() == []


async def test_stopping_while_a_model_is_loaded_fails_by_name(pools: WorkerPools) -> None:
    parsing = asyncio.create_task(pools.parse(*english(), [SHORT], later(30)))
    await until(lambda: bool(children()))
    await pools.stop()
    with pytest.raises(WorkerDiedError, match="unloaded"):
        await parsing
    assert children() == []


async def test_cancelled_load_leaves_no_process(
    three: list[tuple[ModelFile, str]],
) -> None:
    en, de, _ = three
    async with starting(model_memory_mb=1) as pools:
        await pools.load(*en)
        loading = asyncio.create_task(pools.load(*de))
        await until(lambda: not pools.running())
        loading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loading
        await until(lambda: children() == [])


@pytest.mark.slow
async def test_failed_load_is_retried_by_the_next_request(
    pools: WorkerPools, tmp_path: Path
) -> None:
    path = tmp_path / "english-x.udpipe"
    path.write_bytes(b"garbage")
    model = ModelFile("udpipe.v1", "udpipe/english-x", path, ("en",))
    with pytest.raises(ModelLoadError):
        await pools.parse(*named(model), [SHORT], later(30))
    with pytest.raises(ModelLoadError):
        await pools.probe(*named(model), later(30))
    shutil.copy(english()[0].path, path)
    outcomes = await pools.parse(*named(model), [SHORT], later(30))
    assert isinstance(outcomes[0], Parse)


async def test_slow_load_fails_the_request_and_continues(pools: WorkerPools) -> None:
    with pytest.raises(DeadlineError, match="being loaded"):
        await pools.parse(*english(), [SHORT], later(0.01))
    outcomes = await pools.parse(*english(), [SHORT], later(30))
    assert isinstance(outcomes[0], Parse)
