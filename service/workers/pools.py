"""Pools by model: started when first needed, the longest unused one stopped to make room."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from service.parsers import ModelFile, ParseInput
from service.parsers.base import Outcome
from service.settings import Settings
from service.workers.pool import WorkerPool
from syntax.errors import DeadlineError, OverloadedError

_Key = tuple[str, str]


class WorkerPools:
    """Every model in use; belongs to one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pools: OrderedDict[_Key, asyncio.Task[WorkerPool]] = OrderedDict()

    async def parse(
        self, model: ModelFile, fingerprint: str, items: Sequence[ParseInput], deadline: float
    ) -> list[Outcome]:
        """Parse texts with a model, loading it first if need be.

        Args:
            model: The model.
            fingerprint: Of the parser; a file that has been replaced gets new workers.
            items: Texts that `service.pipeline.check_input` has accepted.
            deadline: In the event loop's time.

        Raises:
            ModelLoadError: The model cannot be loaded.
            OverloadedError: Too much waits already, or too many models are busy.
            DeadlineError: The model was not loaded by the deadline (loading goes on).
        """
        starting = await self._pool(model, fingerprint)
        try:
            async with asyncio.timeout_at(deadline):
                pool = await asyncio.shield(starting)
        except TimeoutError:
            raise DeadlineError(
                f"{model.name} is still being loaded; try again in a few seconds"
            ) from None
        return await pool.parse(items, deadline)

    async def stop(self) -> None:
        """End every process."""
        while self._pools:
            _, starting = self._pools.popitem()
            await _stop(starting)

    def running(self) -> list[WorkerPool]:
        """Pools whose model is loaded."""
        return [task.result() for task in self._pools.values() if _is_loaded(task)]

    async def _pool(self, model: ModelFile, fingerprint: str) -> asyncio.Task[WorkerPool]:
        key = (model.name, fingerprint)
        starting = self._pools.get(key)
        if starting is not None and not _has_failed(starting):
            self._pools.move_to_end(key)
            return starting
        await self._make_room(key)
        # Another request may have started it while a pool was being stopped.
        if key not in self._pools:
            pool = WorkerPool(model, fingerprint, self._settings)
            self._pools[key] = asyncio.create_task(_started(pool))
        return self._pools[key]

    async def _make_room(self, key: _Key) -> None:
        """Drop the failed pool of this key, and the longest unused one if there are too many."""
        if key in self._pools:
            await _stop(self._pools.pop(key))
        while len(self._pools) >= self._settings.model_memory_mb // 1024:
            unused = next((k for k, task in self._pools.items() if _is_unused(task)), None)
            if unused is None:
                raise OverloadedError(
                    f"{len(self._pools)} models are loaded and busy; try again in a second, or "
                    "raise model_memory_mb",
                    retry_after=1,
                )
            await _stop(self._pools.pop(unused))


async def _started(pool: WorkerPool) -> WorkerPool:
    await pool.start()
    return pool


async def _stop(starting: asyncio.Task[WorkerPool]) -> None:
    if not starting.done():
        starting.cancel()
    await asyncio.wait([starting])
    if _is_loaded(starting):
        await starting.result().stop()


def _is_loaded(starting: asyncio.Task[WorkerPool]) -> bool:
    return starting.done() and not starting.cancelled() and starting.exception() is None


def _has_failed(starting: asyncio.Task[WorkerPool]) -> bool:
    return starting.done() and (not _is_loaded(starting) or starting.result().is_broken)


def _is_unused(starting: asyncio.Task[WorkerPool]) -> bool:
    return starting.done() and (not _is_loaded(starting) or starting.result().is_idle)
