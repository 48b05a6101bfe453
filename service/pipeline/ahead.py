"""Reading ahead of a consumer, which receives the available items in groups."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class ReadAhead(Generic[T]):
    """Reads a source from now on, independent of the consumer, and closes it at the end."""

    def __init__(self, source: AsyncGenerator[T]) -> None:
        self._items: list[T] = []
        self._arrived = asyncio.Event()
        self._has_ended = False
        self._reading = asyncio.create_task(self._read(source))

    async def groups(self) -> AsyncGenerator[list[T]]:
        """Items that arrived since the last group; at the end, the source's error."""
        while self._items or not self._has_ended:
            await self._arrived.wait()
            self._arrived.clear()
            if self._items:
                group, self._items = self._items, []
                yield group
        await self._reading

    def check(self) -> None:
        """Raise the error of the source, if it failed before its first item."""
        if self._has_ended and not self._items and self._reading.done():
            self._reading.result()

    async def stop(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self, source: AsyncGenerator[T]) -> None:
        try:
            async with aclosing(source):
                async for item in source:
                    self._items.append(item)
                    self._arrived.set()
        finally:
            self._has_ended = True
            self._arrived.set()


@asynccontextmanager
async def read_ahead(source: AsyncGenerator[T]) -> AsyncIterator[ReadAhead[T]]:
    reading = ReadAhead(source)
    try:
        yield reading
    finally:
        await reading.stop()
