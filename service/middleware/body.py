"""Request bodies: limits of type, size and pace; and cached responses."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import error_answer
from service.logs import note
from service.pipeline.response_cache import CachedResponse, Origin, ResponseCache, response_key
from service.security.rules import JSON, path_of, rule_of
from syntax.errors import (
    InputError,
    OverloadedError,
    RequestEntityTooLargeError,
    SpecError,
    UnsupportedMediaTypeError,
)

UPLOAD_SUFFIX: Final = "/backfill"
"""Routes whose bodies are streamed to disk by lines, which have a limit of their own."""

PAUSE_SECONDS: Final = 30.0
"""Longest pause: a client that sends a byte a minute would hold memory for hours."""

BODIES_AT_ONCE: Final = 4

SMALL_BODY_BYTES: Final = 262_144
"""Bodies with room of their own; only they are cached, as hashing one takes 0.3 ms."""

TRIM_SECONDS: Final = 1.0

ORIGIN: Final = "response_origin"
"""Key in the request's state under which a route leaves the `Origin` of a response to keep."""

_CACHED_PATH: Final = "/parse"
_RETRY: Final = "too many large requests come at once; try again in a second"


class BodyMiddleware:
    """ASGI middleware that refuses bodies over a limit unread, and answers repeated ones itself.

    The bodies of all requests together are limited as well: one that announces a large size is
    admitted or refused before it is read, all others are counted as they arrive.

    A body of another media type is refused, because a page of any site may send forms and plain
    text without a preflight; one with a ``Content-Encoding``, because its unpacked size is unknown.

    A ``POST /parse`` is answered from the cache if its bytes, its query, and the headers that
    choose format and encoding equal those of an answered request. A response is kept as it was
    sent, compressed, if the route has left its `ORIGIN`.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, route: Any) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._route = route
        self._announced_room = max_bytes * BODIES_AT_ONCE
        self._arriving_room = max_bytes * BODIES_AT_ONCE
        self._is_trimming = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            length = _check_headers(scope)
            if path_of(scope).endswith(UPLOAD_SUFFIX):
                await self._app(scope, _Body(receive), send)
                return
            self._check_size(length)
            announced = length if length > SMALL_BODY_BYTES else 0
            if announced > self._announced_room:
                raise OverloadedError(_RETRY)
        except (InputError, OverloadedError) as error:
            await error_answer(error)(scope, receive, send)
            return
        body = _Body(receive, None if announced else self._claim)
        self._announced_room -= announced
        try:
            await self._answer(scope, body, send)
        finally:
            self._announced_room += announced
            if not announced:
                self._arriving_room += body.size
            if max(announced, body.size) > SMALL_BODY_BYTES:
                self._trim_soon()

    async def _answer(self, scope: Scope, body: _Body, send: Send) -> None:
        headers = _cacheable_headers(scope)
        if headers is None:
            await self._app(scope, body, send)
            return
        services = scope["app"].state.services
        cache: ResponseCache = services.responses
        chosen = (headers.get(name, b"") for name in (b"accept", b"accept-encoding"))
        key = response_key(await body.read_ahead(), scope["query_string"], *chosen)
        response = cache.get(key)
        if response is None:
            await self._app(scope, body, _Recorder(scope, send, cache, key))
            return
        scope["route"] = self._route
        services.pipeline.counts["reused"] += response.origin.texts
        note(items=response.origin.texts)
        # A copy: outer middleware appends to it.
        start = {"type": "http.response.start", "status": 200, "headers": [*response.headers]}
        await send(start)
        await send({"type": "http.response.body", "body": response.content})

    def _claim(self, size: int, grown: int) -> None:
        """Count the bytes of a body as they arrive; chunked bodies declare no length."""
        self._arriving_room -= grown
        self._check_size(size)
        if self._arriving_room < 0:
            raise OverloadedError(_RETRY)

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise RequestEntityTooLargeError(
                f"the body has more than {self._max_bytes} bytes; send fewer texts at once, use a "
                "backfill job, or raise max_body_bytes",
                limit=self._max_bytes,
            )

    def _trim_soon(self) -> None:
        """Give the memory of large bodies back, once for all that end within a second."""
        if not self._is_trimming:
            self._is_trimming = True
            loop = asyncio.get_running_loop()
            loop.call_later(TRIM_SECONDS, loop.run_in_executor, None, self._trim)

    def _trim(self) -> None:
        self._is_trimming = False
        with suppress(AttributeError):  # only glibc keeps what was freed, and has this
            ctypes.CDLL(None).malloc_trim(0)


class _Body:
    """A body as it arrives. ``claim`` is called with the bytes so far, and the new ones of them."""

    __slots__ = ("_ahead", "_claim", "_is_whole", "_receive", "size")

    def __init__(self, receive: Receive, claim: Callable[[int, int], None] | None = None) -> None:
        self._receive = receive
        self._claim = claim
        self._ahead: list[Message | Exception] = []
        self._is_whole = False
        self.size = 0

    async def read_ahead(self) -> bytes:
        parts: list[bytes] = []
        while not self._is_whole:
            try:
                message = await self._next()
            except Exception as error:
                self._ahead.append(error)
                return b""
            self._ahead.append(message)
            parts.append(message.get("body", b""))
        return b"".join(parts)

    async def __call__(self) -> Message:
        if not self._ahead:
            return await self._next()
        message = self._ahead.pop(0)
        if isinstance(message, Exception):
            raise message
        return message

    async def _next(self) -> Message:
        if self._is_whole:
            # After the body, `receive` waits until the client disconnects: no time limit.
            return await self._receive()
        try:
            async with asyncio.timeout(PAUSE_SECONDS):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(
                HTTPStatus.REQUEST_TIMEOUT,
                f"the body paused for {PAUSE_SECONDS:g} s; send it whole",
            ) from None
        self._is_whole = not message.get("more_body", False)
        grown = len(message.get("body", b""))
        self.size += grown
        if self._claim is not None:
            self._claim(self.size, grown)
        return message


class _Recorder:
    """Sends a response on, and keeps it if its route allows that."""

    __slots__ = ("_cache", "_headers", "_key", "_parts", "_scope", "_send")

    def __init__(self, scope: Scope, send: Send, cache: ResponseCache, key: bytes) -> None:
        self._scope = scope
        self._send = send
        self._cache = cache
        self._key = key
        self._headers: tuple[tuple[bytes, bytes], ...] = ()
        self._parts: list[bytes] = []

    async def __call__(self, message: Message) -> None:
        origin: Origin | None = self._scope.get("state", {}).get(ORIGIN)
        if origin is not None and message["type"] == "http.response.start":
            # A copy: outer middleware appends what belongs to this request only.
            self._headers = tuple(message["headers"])
        elif origin is not None:
            self._parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                content = b"".join(self._parts)
                self._cache.put(self._key, CachedResponse(content, self._headers, origin))
        await self._send(message)


def _check_headers(scope: Scope) -> int:
    """Declared length of a body, or 0; refuses an encoded body, and one of another type."""
    length = 0
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            length = int(value)
        elif name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise SpecError(
                f"the body came with Content-Encoding {value.decode('latin-1')!r}; send it as it is"
            )
        elif name == b"content-type":
            taken = rule_of(scope["method"], path_of(scope)).body
            kind = value.decode("latin-1").partition(";")[0].strip().lower()
            is_json = taken == JSON and kind.endswith("+json")
            if taken and kind and kind not in taken and not is_json:
                raise UnsupportedMediaTypeError(
                    f"the body came as {kind!r}, and this route takes {' or '.join(taken)}; send "
                    f"the header `Content-Type: {taken[0]}`",
                    content_type=kind,
                    accepted=list(taken),
                )
    return length


def _cacheable_headers(scope: Scope) -> dict[bytes, bytes] | None:
    if scope["path"] != _CACHED_PATH or scope["method"] != "POST":
        return None
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"")
    is_short = length.isdigit() and int(length) <= SMALL_BODY_BYTES
    if not is_short or len(headers) < len(scope["headers"]):
        # A chunked body, a long body, or a repeated header.
        return None
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return headers if kind == JSON[0].encode() else None
