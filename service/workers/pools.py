"""The pools of all models: started on first use; the least recently used is stopped for space."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from contextvars import Context
from typing import Final

from service.logs import get_logger
from service.parsers import BACKENDS, ModelFile, ParseInput
from service.parsers.base import Outcome
from service.settings import Settings
from service.timing import Stages
from service.workers.memory import shared_bytes
from service.workers.pool import WorkerPool, unloaded
from service.workers.slow import SlowTexts
from service.workers.stats import StatsByParser
from syntax.errors import ConflictError, DeadlineError, OverloadedError, WorkError

_log = get_logger(__name__)

_Key = tuple[str, str]

_MIB: Final = 1024 * 1024
_BASE_BYTES: Final = 100 * _MIB
_BULK_BASE_BYTES: Final = 400 * _MIB
_BYTES_PER_BYTE: Final = 4
"""Measured with two workers: UDPipe takes 95 MB with 5 MB of model in files, Stanza, which brings
torch along, 470 MB with 11 MB.
"""

_ONE_WORD: Final = ParseInput("pretokenized", tokens=("word",))


class WorkerPools:
    """The pools of all loaded models; belongs to one event loop."""

    def __init__(self, settings: Settings, stages: Stages | None = None) -> None:
        self._settings = settings
        self._stages = Stages() if stages is None else stages
        self._slots: OrderedDict[_Key, _Slot] = OrderedDict()
        self._stats = StatsByParser()
        self._slow = SlowTexts(settings)
        self._measured: dict[str, int] = {}
        self._users = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._opening = asyncio.Lock()
        self._leaving: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self._is_stopped = False

    @property
    def stats(self) -> StatsByParser:
        """Counts by model name, including unloaded models."""
        return self._stats

    def running(self) -> list[WorkerPool]:
        """Pools whose model is loaded. Safe for threads."""
        return [slot.pool for slot in list(self._slots.values()) if slot.is_loaded]

    async def parse(
        self, model: ModelFile, fingerprint: str, items: Sequence[ParseInput], deadline: float
    ) -> list[Outcome]:
        """Parse texts that `service.pipeline.check_input` accepted; the first use loads the model.

        A replaced file, with another fingerprint, gets new workers. The deadline is in the event
        loop's time.

        Raises:
            ModelLoadError: The model cannot be loaded.
            OverloadedError: The queue is full, too many models are busy, or the service stops.
            SpecError: The texts exceed the capacity of the queue.
            DeadlineError: The model was not loaded by the deadline; loading goes on.
        """
        async with self._lease(model, fingerprint, deadline) as pool:
            return await pool.parse(items, deadline)

    async def stream(
        self, model: ModelFile, fingerprint: str, items: Sequence[ParseInput], deadline: float
    ) -> AsyncGenerator[tuple[int, Outcome], None]:
        """Yield position and outcome of each text of `parse` as it is known.

        Every text is yielded exactly once, at its deadline at the latest. The first step raises
        the errors of `parse`. Closing the iterator early (`contextlib.aclosing`) removes waiting
        texts from the queue.
        """
        async with (
            self._lease(model, fingerprint, deadline) as pool,
            aclosing(pool.stream(items, deadline)) as answers,
        ):
            async for answer in answers:
                yield answer

    async def probe(self, model: ModelFile, fingerprint: str, deadline: float) -> None:
        """Check that parsing works: parse one word, ahead of the queue."""
        async with (
            self._lease(model, fingerprint, deadline) as pool,
            aclosing(pool.stream([_ONE_WORD], deadline, first=True)) as answers,
        ):
            async for _, outcome in answers:
                if isinstance(outcome, WorkError):
                    raise outcome

    async def load(self, model: ModelFile, fingerprint: str) -> None:
        async with self._lease(model, fingerprint, None):
            pass

    async def unload(self, name: str) -> bool:
        """Stop the processes of a model, by name or fingerprint; true if it was loaded."""
        keys = [key for key in self._slots if name in key]
        for key in keys:
            if not self._slots[key].is_unused:
                raise ConflictError(
                    f"{key[0]} is loading or has texts to parse; try again when it has none",
                    name=key[0],
                )
        await self._dismiss(keys)
        return bool(keys)

    async def drain(self, seconds: float) -> None:
        """Refuse new texts, finish the accepted ones within the time, then stop."""
        self._is_closing = True
        try:
            async with asyncio.timeout(seconds):
                await self._quiet.wait()
        except TimeoutError:
            _log.warning("texts are given up", seconds=seconds)
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Stop every process; open texts fail."""
        self._is_closing = self._is_stopped = True
        await self._dismiss(self._slots)
        while self._leaving:
            await asyncio.wait(self._leaving)

    @asynccontextmanager
    async def _lease(
        self, model: ModelFile, fingerprint: str, deadline: float | None
    ) -> AsyncIterator[WorkerPool]:
        self._check_open()
        async with AsyncExitStack() as stack:
            stack.enter_context(self._counted())
            try:
                async with asyncio.timeout_at(deadline):
                    slot = await self._slot(model, fingerprint)
                    stack.enter_context(slot.used())
                    # Shielded: loading goes on for other callers if this one is cancelled.
                    await asyncio.shield(slot.starting)
            except TimeoutError:
                raise DeadlineError(
                    f"{model.name} is still being loaded; try again in a few seconds",
                    loading=model.name,
                ) from None
            yield slot.pool

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._users += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._quiet.set()

    async def _slot(self, model: ModelFile, fingerprint: str) -> _Slot:
        key = (model.name, fingerprint)
        if (slot := self._live(key)) is None:
            async with self._opening:
                slot = self._live(key) or await self._open(key, model)
        self._slots.move_to_end(key)
        return slot

    def _live(self, key: _Key) -> _Slot | None:
        slot = self._slots.get(key)
        return None if slot is None or slot.has_failed else slot

    async def _open(self, key: _Key, model: ModelFile) -> _Slot:
        await self._dismiss(
            other
            for other, slot in self._slots.items()
            if other == key or (other[0] == model.name and slot.is_unused)
        )
        expected = await self._make_space(model)
        if self._is_stopped:
            raise unloaded()
        stats = self._stats[model.name]
        stats.loads += 1
        pool = WorkerPool(model, key[1], self._settings, stats, self._stages, self._slow)
        self._slots[key] = _Slot(pool, expected)
        return self._slots[key]

    async def _make_space(self, model: ModelFile) -> int:
        """Unload the least recently used models until this one fits; returns its expected bytes."""
        limit = self._settings.model_memory_mb * _MIB
        while self._slots:
            await self._measure()
            taken = sum(slot.bytes for slot in self._slots.values())
            if taken + self._expected(model) <= limit:
                break
            unused = [key for key, slot in self._slots.items() if slot.is_unused]
            if not unused:
                raise OverloadedError(
                    f"there is no room for {model.name}: {len(self._slots)} models are loaded and "
                    "busy; try again in a second, or raise model_memory_mb",
                    retry_after=1,
                )
            await self._dismiss(unused[:1])
        return self._expected(model)

    async def _measure(self) -> None:
        loaded = [slot for slot in self._slots.values() if slot.is_loaded]
        families = [slot.pool.pids for slot in loaded]
        sizes = await asyncio.to_thread(lambda: [shared_bytes(pids) for pids in families])
        for slot, size in zip(loaded, sizes, strict=True):
            slot.bytes = self._measured[slot.pool.model.name] = size

    def _expected(self, model: ModelFile) -> int:
        if model.name in self._measured:
            return self._measured[model.name]
        base = _BULK_BASE_BYTES if BACKENDS[model.backend].bulk else _BASE_BYTES
        try:
            return base + _BYTES_PER_BYTE * model.size
        except OSError:  # a file is missing, which loading will report
            return base

    async def _dismiss(self, keys: Iterable[_Key]) -> None:
        """Stop pools in tasks of their own, so that a cancelled caller does not interrupt it."""
        leaving = [asyncio.create_task(self._slots.pop(key).stop()) for key in list(keys)]
        for task in leaving:
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)
        if leaving:
            await asyncio.wait(leaving)

    def _check_open(self) -> None:
        if self._is_closing:
            raise OverloadedError(
                "the service is about to stop and accepts no more texts; try again in a moment",
                retry_after=1,
            )


class _Slot:
    """A pool that is loaded or loading; ``bytes`` are measured, or at first expected."""

    def __init__(self, pool: WorkerPool, expected: int) -> None:
        self.pool = pool
        self.bytes = expected
        # An empty context: its workers outlive the request that loaded it, and must not log its id.
        self.starting = asyncio.create_task(self._start(), context=Context())
        self._users = 0

    @contextmanager
    def used(self) -> Iterator[None]:
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1

    @property
    def is_loaded(self) -> bool:
        task = self.starting
        return task.done() and not task.cancelled() and task.exception() is None

    @property
    def has_failed(self) -> bool:
        return self.starting.done() and (not self.is_loaded or self.pool.is_broken)

    @property
    def is_unused(self) -> bool:
        return self.starting.done() and not self._users

    async def stop(self) -> None:
        await asyncio.sleep(0)  # a task that has not started would end without its error
        self.starting.cancel()
        await asyncio.wait([self.starting])
        if self.is_loaded:
            await self.pool.stop()

    async def _start(self) -> None:
        try:
            await self.pool.start()
        except asyncio.CancelledError:
            # The waiting requests were not cancelled themselves, and need an error.
            raise unloaded() from None
