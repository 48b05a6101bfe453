"""Ends endless streams when the service stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def until(stop: asyncio.Event, items: AsyncIterator[T]) -> AsyncIterator[T]:
    """Yield items until the source ends or ``stop`` is set."""
    stopped = asyncio.create_task(stop.wait())
    try:
        while (upcoming := await _next(stopped, items)) is not None:
            yield upcoming.result()
    except StopAsyncIteration:
        return
    finally:
        stopped.cancel()


async def _next(stopped: asyncio.Task[bool], items: AsyncIterator[T]) -> asyncio.Future[T] | None:
    upcoming = asyncio.ensure_future(anext(items))
    try:
        await asyncio.wait({stopped, upcoming}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not upcoming.done():
            upcoming.cancel()
            with suppress(asyncio.CancelledError):
                await upcoming
    return None if upcoming.cancelled() else upcoming
