"""Callers that leave before their answer is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect, Request


@asynccontextmanager
async def while_connected(request: Request) -> AsyncIterator[None]:
    """Give up what a block waits for when the caller leaves: its texts leave the queue.

    For requests whose body has been read, and whose answer has not begun: a stream has an end of
    its own (`service.render.streaming`). What threads have begun is finished.

    Raises:
        ClientDisconnect: The caller has left.
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
