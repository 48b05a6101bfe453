"""Limits of a request body: its type, its size, with a declared length or not, and its pace."""

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
"""How long a body may pause; whoever sends a byte a minute would hold its memory for hours."""

BODIES_AT_ONCE: Final = 16
"""Bodies of full size that may be in memory together, while they arrive."""


class BodyLimit:
    """ASGI middleware that refuses bodies over a limit, without reading more of them than that.

    A body that says it is of another type than its route takes is refused: forms and plain text
    are what a page of any site may send without asking first.

    Bodies are taken as they come: one with a ``Content-Encoding`` is refused, for what it unpacks
    to has no limit.

    Args:
        app: The app behind it.
        max_bytes: Largest body.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._room = max_bytes * BODIES_AT_ONCE

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
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
        """Count a body as it comes; chunked ones declare no length.

        Raises:
            RequestEntityTooLargeError: The body is too large.
            OverloadedError: All bodies together are.
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
    """The body of one request on its way in.

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
            # Whoever asks now waits for the caller to leave, which takes as long as it takes.
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
    """The declared length of a body, or 0; refuses one that is encoded, or of a wrong type.

    Raises:
        SpecError: It is encoded.
        UnsupportedMediaTypeError: It says that it is of a type which the route does not take.
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
