"""Limits of a request body: type, size and pace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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

BODIES_AT_ONCE: Final = 16
"""Bodies of full size that may arrive at the same time."""


class BodyLimit:
    """ASGI middleware that refuses bodies over a limit, without reading them further.

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
        self._room = max_bytes * BODIES_AT_ONCE

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the app, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_upload = path_of(scope).endswith(UPLOAD_SUFFIX)
        try:
            length = _check_headers(scope)
            if length > self._max_bytes and not is_upload:
                raise self._too_large()
        except InputError as error:
            await error_answer(error)(scope, receive, send)
            return
        if is_upload:
            await self._app(scope, _Body(receive, _unlimited), send)
        else:
            await self._read(scope, receive, send)

    async def _read(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = _Body(receive, self._claim)
        try:
            await self._app(scope, body, send)
        finally:
            self._room += body.size

    def _claim(self, size: int, grown: int) -> None:
        """Count the bytes of a body as they arrive; chunked bodies declare no length.

        Raises:
            RequestEntityTooLargeError: The body is too large.
            OverloadedError: The bodies of all requests together are too large.
        """
        self._room -= grown
        if size > self._max_bytes:
            raise self._too_large()
        if self._room < 0:
            raise OverloadedError("too many large requests come at once; try again in a second")

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
