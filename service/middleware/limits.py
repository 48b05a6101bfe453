"""Limits of a request body: type, size and pace."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import error_answer
from service.security.rules import JSON, path_of, rule_of
from syntax.errors import (
    InputError,
    OverloadedError,
    RequestEntityTooLargeError,
    SpecError,
    UnsupportedMediaTypeError,
)

UPLOAD_SUFFIX: Final = "/backfill"
"""Routes whose bodies are streamed to disk, line by line, whose lines have a limit of their own."""

PAUSE_SECONDS: Final = 30.0
"""Longest pause of a body: a client that sends a byte a minute would hold memory for hours."""

BODIES_AT_ONCE: Final = 4
"""Bodies of full size that may be in memory at the same time, as bytes, as JSON and as texts."""

SMALL_BODY_BYTES: Final = 262_144
"""Bodies up to this size have room of their own, which large ones cannot take from them."""

TRIM_SECONDS: Final = 1.0

_RETRY: Final = "too many large requests come at once; try again in a second"


class BodyLimit:
    """ASGI middleware that refuses bodies over a limit, without reading them further.

    The bodies of all requests together are limited as well: one that announces a large size is
    admitted or refused before it is read, all others are counted as they arrive. What large ones
    leave behind is given back to the system.

    A body of another media type than the route takes is refused, because a page of any site may
    send forms and plain text without a preflight. A body with a ``Content-Encoding`` is refused,
    because its unpacked size is unknown.

    Args:
        app: The app behind it.
        max_bytes: Largest body.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._announced_room = max_bytes * BODIES_AT_ONCE
        self._arriving_room = max_bytes * BODIES_AT_ONCE
        self._is_trimming = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the app, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            length = _check_headers(scope)
            if path_of(scope).endswith(UPLOAD_SUFFIX):
                await self._app(scope, _Body(receive, _unlimited), send)
                return
            self._check_size(length)
            announced = length if length > SMALL_BODY_BYTES else 0
            if announced > self._announced_room:
                raise OverloadedError(_RETRY)
        except (InputError, OverloadedError) as error:
            await error_answer(error)(scope, receive, send)
            return
        if announced:
            await self._read_announced(announced, scope, receive, send)
        else:
            await self._read_arriving(scope, receive, send)

    async def _read_announced(self, size: int, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a large body, whose whole size is taken at once."""
        self._announced_room -= size
        try:
            await self._app(scope, _Body(receive, _unlimited), send)
        finally:
            self._announced_room += size
            self._trim_soon()

    async def _read_arriving(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = _Body(receive, self._claim)
        try:
            await self._app(scope, body, send)
        finally:
            self._arriving_room += body.size
            if body.size > SMALL_BODY_BYTES:
                self._trim_soon()

    def _claim(self, size: int, grown: int) -> None:
        """Count the bytes of a body as they arrive; chunked bodies declare no length.

        Raises:
            RequestEntityTooLargeError: The body is too large.
            OverloadedError: The bodies of all requests together are too large.
        """
        self._arriving_room -= grown
        self._check_size(size)
        if self._arriving_room < 0:
            raise OverloadedError(_RETRY)

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

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise self._too_large()

    def _too_large(self) -> RequestEntityTooLargeError:
        return RequestEntityTooLargeError(
            f"the body has more than {self._max_bytes} bytes; send fewer texts at once, use a "
            "backfill job, or raise max_body_bytes",
            limit=self._max_bytes,
        )


class _Body:
    """The body of one request, as it arrives.

    Attributes:
        size: Bytes so far.
    """

    __slots__ = ("_claim", "_is_whole", "_receive", "size")

    def __init__(self, receive: Receive, claim: Callable[[int, int], None]) -> None:
        self._receive = receive
        self._claim = claim
        self._is_whole = False
        self.size = 0

    async def __call__(self) -> Message:
        """The next message."""
        if self._is_whole:
            # After the body, `receive` waits until the client disconnects: no time limit.
            return await self._receive()
        message = await self._in_time()
        self._is_whole = not message.get("more_body", False)
        grown = len(message.get("body", b""))
        self.size += grown
        self._claim(self.size, grown)
        return message

    async def _in_time(self) -> Message:
        try:
            async with asyncio.timeout(PAUSE_SECONDS):
                return await self._receive()
        except TimeoutError:
            raise HTTPException(
                HTTPStatus.REQUEST_TIMEOUT,
                f"the body paused for {PAUSE_SECONDS:g} s; send it whole",
            ) from None


def _unlimited(size: int, grown: int) -> None:
    """The claim of an upload: its lines have limits of their own."""


def _check_headers(scope: Scope) -> int:
    """The declared length of a body, or 0.

    Raises:
        SpecError: The body is encoded.
        UnsupportedMediaTypeError: The route does not take the declared media type.
    """
    length = 0
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            length = int(value)
        elif name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise SpecError(
                f"the body came with Content-Encoding {value.decode('latin-1')!r}; send it as it is"
            )
        elif name == b"content-type":
            _check_type(value.decode("latin-1"), rule_of(scope["method"], path_of(scope)).body)
    return length


def _check_type(sent: str, taken: tuple[str, ...]) -> None:
    kind = sent.partition(";")[0].strip().lower()
    if taken and kind and kind not in taken and not (taken == JSON and kind.endswith("+json")):
        raise UnsupportedMediaTypeError(
            f"the body came as {kind!r}, and this route takes {' or '.join(taken)}; send the "
            f"header `Content-Type: {taken[0]}`",
            content_type=kind,
            accepted=list(taken),
        )
