"""A response that is sent as it is made."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class ClosingStream(StreamingResponse):
    """Sends what a generator gives, and closes the generator even when the caller goes away.

    Args:
        first: What it gave already.
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
