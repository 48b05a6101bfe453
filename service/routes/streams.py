"""Answers whose caller may leave before they end, or that go on until the service stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

T = TypeVar("T")


@asynccontextmanager
async def while_connected(request: Request) -> AsyncIterator[None]:
    """Cancel the block with `ClientDisconnect` when the caller disconnects.

    For requests whose body has been read and whose answer has not started. Work in threads is
    finished.
    """
    loop = asyncio.get_running_loop()

    async def watch(given_up: asyncio.Timeout) -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        given_up.reschedule(loop.time())

    try:
        async with asyncio.timeout(None) as given_up:
            watching = asyncio.create_task(watch(given_up))
            try:
                yield
            finally:
                watching.cancel()
    except TimeoutError:
        if given_up.expired():
            raise ClientDisconnect from None
        raise


class ClosingStream(StreamingResponse):
    """A streamed response, without its ``first`` chunk, that closes its generator in any case."""

    def __init__(
        self, first: bytes, rest: AsyncGenerator[bytes], headers: Mapping[str, str]
    ) -> None:
        super().__init__(_joined(first, rest), headers=headers)
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._rest.aclose()


async def _joined(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


async def until(stop: asyncio.Event, items: AsyncIterator[T]) -> AsyncIterator[T]:
    stopped = asyncio.create_task(stop.wait())
    try:
        while True:
            upcoming = asyncio.ensure_future(anext(items))
            try:
                await asyncio.wait({stopped, upcoming}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not upcoming.done():
                    upcoming.cancel()
                    with suppress(asyncio.CancelledError):
                        await upcoming
            if upcoming.cancelled():
                return
            yield upcoming.result()
    except StopAsyncIteration:
        return
    finally:
        stopped.cancel()
