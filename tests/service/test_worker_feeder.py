"""Who is to blame when a worker dies or is too late over a batch.

The parser is UDPipe; with ``bulk`` its batches are judged as those of a parser that answers a
batch as a whole. A real one is in `test_worker_faults`.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from functools import partial

import psutil
import pytest
import pytest_asyncio

from service.parsers import Limits, ParseInput, find_parser
from service.settings import Settings
from service.timing import Stages
from service.workers.feeder import Feeder
from service.workers.process import ForkServer, ParserProcess
from service.workers.queue import FairQueue, PendingRequest, PendingText
from service.workers.slow import SlowTexts
from service.workers.stats import StatsByParser
from syntax import Parse
from syntax.errors import DeadlineError, TextTooSlowError, WorkerDiedError

from .parser_processes import summed

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHORT = ParseInput("raw", text="It works. Does it?")
# Five seconds of parsing: the parser is quadratic.
HUGE = ParseInput("sentence", text="word " * 3000)
LARGE = ParseInput("sentence", text="word " * 2999)


class Bench:
    """A fork server, a queue and a feeder."""

    def __init__(self, fork_server: ForkServer, bulk: bool, deadline: float = 60.0) -> None:
        self.workers: list[ParserProcess] = []
        self.fork_server = fork_server
        self.queue = FairQueue(capacity=10**6, workers=1, quantum=10**6)
        self.stats = StatsByParser()["own"]
        self.slow = partial(SlowTexts(Settings(request_deadline_seconds=deadline)).add, "parser")
        self.feeder = Feeder(self.queue, self.stats, Stages(), bulk, self.slow, deadline)

    def request(self, items: Sequence[ParseInput], seconds: float = 60.0) -> PendingRequest:
        """A request in the queue, which expires as the pool sees to it."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        asked = PendingRequest(items, [item.words for item in items], now, now + seconds)
        self.queue.put(asked)
        loop.call_at(asked.deadline, self.queue.expire, asked)
        return asked

    async def batch(self) -> list[PendingText]:
        return await self.queue.take(10**6)

    async def feed_and_kill(self, batch: list[PendingText]) -> str | None:
        """Kill the worker as soon as it has the batch; it is stopped, so that it cannot answer."""
        worker = await self.spawn()
        psutil.Process(worker.pid).send_signal(signal.SIGSTOP)
        feeding = asyncio.create_task(self.feeder.feed(worker, batch))
        await asyncio.sleep(0)
        psutil.Process(worker.pid).kill()
        return await feeding

    async def feed(self, batch: list[PendingText]) -> tuple[str | None, ParserProcess]:
        worker = await self.spawn()
        return await self.feeder.feed(worker, batch), worker

    async def spawn(self) -> ParserProcess:
        self.workers.append(await self.fork_server.fork())
        return self.workers[-1]

    async def stop(self) -> None:
        for worker in self.workers:
            await worker.end()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fork_server() -> AsyncIterator[ForkServer]:
    model = find_parser(Settings(store="unused"), "udpipe/english-ewt")
    started = await ForkServer.start(model, Limits(max_words_per_sentence=5_000), "cpu", 60.0)
    yield started
    await started.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def single(fork_server: ForkServer) -> AsyncIterator[Bench]:
    """The parser answers text by text."""
    started = Bench(fork_server, bulk=False)
    yield started
    await started.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def bulk(fork_server: ForkServer) -> AsyncIterator[Bench]:
    """The parser counts as one that answers a batch as a whole."""
    started = Bench(fork_server, bulk=True)
    yield started
    await started.stop()


@pytest.fixture(params=["single", "bulk"])
def either(request: pytest.FixtureRequest, single: Bench, bulk: Bench) -> Bench:
    return {"single": single, "bulk": bulk}[request.param]


def outcomes(request: PendingRequest) -> list[str | None]:
    return [type(job.outcome).__name__ if job.outcome else None for job in request.texts]


async def test_feeder_counts_answered_batches(either: Bench) -> None:
    asked = either.request([SHORT, ParseInput("raw", text=" "), SHORT])
    reason, worker = await either.feed(await either.batch())
    assert reason is None
    assert not worker.is_gone
    assert outcomes(asked) == ["Parse", "NoSentenceError", "Parse"]
    assert either.stats.texts == 3
    assert summed(either.stats.batch_words, "_sum") == sum(job.words for job in asked.texts)
    assert either.queue.expected_seconds(100) > 0


async def test_feeder_blames_the_first_unanswered_text(single: Bench) -> None:
    asked = single.request([SHORT, SHORT])
    assert await single.feed_and_kill(await single.batch()) == "died"
    assert [(job.deaths, job.alone) for job in asked.texts] == [(1, False), (0, False)]
    assert await single.feed_and_kill(await single.batch()) == "died"
    assert outcomes(asked) == ["WorkerDiedError", None]
    assert (await single.feed(await single.batch()))[0] is None
    assert isinstance(asked.texts[1].outcome, Parse)


async def test_feeder_retries_bulk_texts_alone(bulk: Bench) -> None:
    asked = bulk.request([SHORT] * 3)
    assert await bulk.feed_and_kill(await bulk.batch()) == "died"
    assert [(job.deaths, job.alone) for job in asked.texts] == [(0, True)] * 3
    # The first is the culprit: its next two workers die as well.
    for _ in range(2):
        batch = await bulk.batch()
        assert batch == asked.texts[:1]
        assert await bulk.feed_and_kill(batch) == "died"
    assert isinstance(asked.texts[0].outcome, WorkerDiedError)
    for job in asked.texts[1:]:
        batch = await bulk.batch()
        assert batch == [job]
        assert (await bulk.feed(batch))[0] is None
    assert outcomes(asked) == ["WorkerDiedError", "Parse", "Parse"]


async def test_feeder_fails_only_the_late_text_of_a_bulk_batch(bulk: Bench) -> None:
    late, others = bulk.request([HUGE], seconds=0.3), bulk.request([SHORT] * 2)
    reason, worker = await bulk.feed(await bulk.batch())
    assert reason == "deadline"
    assert worker.is_gone
    assert isinstance(late.texts[0].outcome, DeadlineError)
    assert [job.alone for job in others.texts] == [True, True]
    for _ in others.texts:
        assert (await bulk.feed(await bulk.batch()))[0] is None
    assert outcomes(others) == ["Parse", "Parse"]


@pytest.mark.slow_cases
@pytest.mark.parametrize("bulk", [False, True])
async def test_feeder_names_a_text_on_which_a_worker_computes_for_long(
    fork_server: ForkServer, bulk: bool
) -> None:
    bench = Bench(fork_server, bulk, deadline=0.02)
    try:
        for leaves in (False, True):  # also if its request was given up
            worker = await bench.spawn()
            slow = bench.request([HUGE], seconds=1.0)
            batch = await bench.batch()
            if leaves:
                bench.queue.withdraw(slow)
            assert await bench.feeder.feed(worker, batch) == "deadline"
            told = [type(job.outcome) for job in batch]
            assert told == [type(None) if leaves else TextTooSlowError]
        # A worker that does not come to compute says nothing about the text.
        worker = await bench.spawn()
        psutil.Process(worker.pid).send_signal(signal.SIGSTOP)
        late = bench.request([LARGE], seconds=0.5)
        assert await bench.feeder.feed(worker, await bench.batch()) == "deadline"
        assert outcomes(late) == ["DeadlineError"]
        assert bench.slow(HUGE, 0.0) is not None
        assert bench.slow(LARGE, 0.0) is None
        # What was spent on one text adds up.
        assert bench.slow(LARGE, 0.006) is None
        assert bench.slow(LARGE, 0.006) is not None
    finally:
        await bench.stop()


async def test_feeder_spares_a_worker_with_a_late_text(either: Bench) -> None:
    either.request([SHORT] * 50)
    await either.feed(await either.batch())
    late, others = either.request([SHORT], seconds=0.0), either.request([SHORT] * 2)
    batch = await either.batch()
    either.queue.expire(late)
    reason, worker = await either.feed(batch)
    assert reason is None
    assert not worker.is_gone
    assert outcomes(late) == ["DeadlineError"]
    assert outcomes(others) == ["Parse", "Parse"]


async def test_feeder_drops_texts_of_closed_requests(bulk: Bench) -> None:
    gone, staying = bulk.request([SHORT] * 2), bulk.request([SHORT])
    batch = await bulk.batch()
    bulk.queue.withdraw(gone)
    assert await bulk.feed_and_kill(batch) == "died"
    assert await bulk.batch() == staying.texts
    assert not bulk.queue
