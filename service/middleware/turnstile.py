"""Requests begin a few at a time, so that the event loop comes round soon, whoever waits."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from service.security.rules import path_of

AT_ONCE: Final = 4
"""Requests that begin in one turn of the loop. An answer at hand takes a quarter of a millisecond
at worst, so a turn takes one."""

_FIRST: Final = frozenset({"/health/live"})


class Turnstile:
    """ASGI middleware that lets a few requests begin in each turn of the event loop.

    Sixty-four callers of answers at hand would otherwise be served in one turn, and a health check
    that comes meanwhile would wait for all of them. Health checks pass at once; the others pass in
    the order in which they came. What waits for a parser is not in hand, and holds nobody up.

    Args:
        app: The app with its other middleware.
        at_once: See `AT_ONCE`.
    """

    def __init__(self, app: ASGIApp, at_once: int = AT_ONCE) -> None:
        self._app = app
        self._at_once = at_once
        self._left = at_once
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_turning = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on when it is its turn."""
        if scope["type"] == "http" and path_of(scope) not in _FIRST:
            await self._pass()
        await self._app(scope, receive, send)

    async def _pass(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._is_turning:
            self._is_turning = True
            loop.call_soon(self._turn, loop)
        if self._left and not self._waiting:
            self._left -= 1
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin a turn: it is the loop's next one, after it has looked for what came."""
        self._left = self._at_once
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        self._is_turning = self._left < self._at_once
        if self._is_turning:
            loop.call_soon(self._turn, loop)
