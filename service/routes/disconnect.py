"""Callers that disconnect before their answer is ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect, Request


@asynccontextmanager
async def while_connected(request: Request) -> AsyncIterator[None]:
    """Cancel the block when the caller disconnects, which removes its texts from the queue.

    For requests whose body has been read and whose answer has not started; streams handle a
    disconnect themselves (`service.render.streaming`). Work in threads is finished.

    Raises:
        ClientDisconnect: The caller has disconnected.
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
