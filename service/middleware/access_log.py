"""The access log: an id, a log line and metrics for every request."""

from __future__ import annotations

import re
import secrets
import time
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import unexpected_answer
from service.logs import get_logger, request_facts
from service.metrics import RequestMetrics

HEADER: Final = b"x-request-id"

_ACCEPTED_ID: Final = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
"""Accepted ids: they are logged, so they must not forge or fill a log line."""

_METHODS: Final = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})
_UNMATCHED: Final = "none"
_QUIET_PREFIXES: Final = ("/health/", "/metrics")


class AccessLog:
    """ASGI middleware around all others: logs, counts and names every request.

    The id is the request's ``X-Request-ID`` if it is valid, else a new one; the response and the
    request's log lines carry it. Exceptions that no other handler catches are answered here.
    """

    def __init__(self, app: ASGIApp, counts: RequestMetrics) -> None:
        self._app = app
        self._counts = counts
        self._log: Any = get_logger("parsebank.requests").bind()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_id = _request_id(scope)
        answer = _Answer(send, request_id)
        self._counts.in_progress.inc()
        with request_facts(request_id.decode()) as facts:
            try:
                await self._app(scope, receive, answer)
            except Exception as error:
                self._log.error("request failed", exc_info=error)
                if answer.status:
                    # Part of the response is sent; only a closed connection signals the failure.
                    raise
                await unexpected_answer(error)(scope, receive, answer)
            finally:
                self._counts.in_progress.dec()
                self._finish(scope, answer, time.perf_counter() - started, facts)

    def _finish(self, scope: Scope, answer: _Answer, seconds: float, facts: dict[str, Any]) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        route = getattr(scope.get("route"), "path", _UNMATCHED)
        self._counts.count(method, route, answer.status, seconds)
        shown = {"method": method, "route": route, "status": answer.status}
        tell = self._log.debug if route.startswith(_QUIET_PREFIXES) else self._log.info
        tell("request", **shown, ms=round(seconds * 1000, 2), bytes=answer.size, **facts)


class _Answer:
    """Adds the id to the response, and records its status (0 until it starts) and size."""

    __slots__ = ("_id", "_send", "size", "status")

    def __init__(self, send: Send, request_id: bytes) -> None:
        self._send = send
        self._id = request_id
        self.status = 0
        self.size = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            # A new list: the headers may belong to a cached response.
            message["headers"] = [*message.get("headers", ()), (HEADER, self._id)]
        else:
            self.size += len(message.get("body", b""))
        await self._send(message)


def _request_id(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == HEADER and _ACCEPTED_ID.fullmatch(value):
            return bytes(value)
    return secrets.token_hex(8).encode()
