"""What every request is given, and what is kept of it: an id, a line in the log, its numbers."""

from __future__ import annotations

import re
import secrets
import time
from typing import Any, Final

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import unexpected_answer
from service.logs import request_facts
from service.metrics import RequestCounts

HEADER: Final = b"x-request-id"

_ACCEPTED_ID: Final = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
"""An id from outside ends up in the log; what could forge a line, or fill it, is not taken over."""

_METHODS: Final = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})
_UNMATCHED: Final = "none"
_QUIET_PREFIXES: Final = ("/health/", "/metrics")


class Observer:
    """ASGI middleware around all others.

    The id is the request's ``X-Request-ID`` if that is a sound one, or a new one; the answer has
    it as a header and everything logged meanwhile as ``request_id``. A failure that nothing else
    has caught is logged and answered here.

    Args:
        app: The app with its other middleware.
        counts: Takes the numbers.
    """

    def __init__(self, app: ASGIApp, counts: RequestCounts) -> None:
        self._app = app
        self._counts = counts
        self._log: Any = structlog.get_logger("parsebank.requests").bind()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and keep account of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_id = _request_id(scope)
        answer = _Answer(send, request_id)
        self._counts.in_progress += 1
        with request_facts(request_id.decode()) as facts:
            try:
                await self._guarded(scope, receive, answer)
            finally:
                self._counts.in_progress -= 1
                self._finish(scope, answer, time.perf_counter() - started, facts)

    async def _guarded(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        try:
            await self._app(scope, receive, answer)
        except Exception as error:
            self._log.error("request failed", exc_info=error)
            if answer.status:
                # Half an answer is out; only the end of the connection can tell that it broke.
                raise
            await unexpected_answer(error)(scope, receive, answer)

    def _finish(self, scope: Scope, answer: _Answer, seconds: float, facts: dict[str, Any]) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        route = getattr(scope.get("route"), "path", _UNMATCHED)
        self._counts.count(method, route, answer.status, seconds)
        tell = self._log.debug if route.startswith(_QUIET_PREFIXES) else self._log.info
        ms = round(seconds * 1000, 2)
        tell(
            "request",
            method=method,
            route=route,
            status=answer.status,
            ms=ms,
            bytes=answer.size,
            **facts,
        )


class _Answer:
    """The way out: adds the id, and sees status and size.

    Attributes:
        status: 0 until the answer begins.
        size: Bytes of body so far.
    """

    __slots__ = ("_id", "_send", "size", "status")

    def __init__(self, send: Send, request_id: bytes) -> None:
        self._send = send
        self._id = request_id
        self.status = 0
        self.size = 0

    async def __call__(self, message: Message) -> None:
        """Send a message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            # Not appended in place: an answer that is kept ready would collect ids.
            message["headers"] = [*message.get("headers", ()), (HEADER, self._id)]
        else:
            self.size += len(message.get("body", b""))
        await self._send(message)


def _request_id(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == HEADER and _ACCEPTED_ID.fullmatch(value):
            return bytes(value)
    return secrets.token_hex(8).encode()
