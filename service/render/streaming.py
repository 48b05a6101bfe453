"""Streamed responses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class ClosingStream(StreamingResponse):
    """A streamed response that closes its generator even if the caller disconnects.

    Args:
        first: The first chunk, already taken from the generator.
        rest: The generator.
        headers: All headers.
    """

    def __init__(
        self, first: bytes, rest: AsyncGenerator[bytes], headers: Mapping[str, str]
    ) -> None:
        super().__init__(_joined(first, rest), headers=headers)
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._rest.aclose()


async def _joined(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece
