"""The response cache in front of ``POST /parse``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.logs import note
from service.pipeline.response_cache import CachedResponse, response_key
from service.render.etag import is_current
from service.render.negotiate import FORMATS, choose_encoding, negotiate

LONGEST_BODY: Final = 262_144
"""Bytes of the longest request that is looked up; hashing them takes 0.3 ms."""

_PATH: Final = "/parse"
_JSON: Final = b"application/json"


class ResponseCacheMiddleware:
    """ASGI middleware that answers repeated requests from the `ResponseCache`.

    It answers a request only if its bytes equal those of a request that the app has answered;
    every other request goes to the app. The middleware around it checks keys, rates and sizes.

    Args:
        app: The app behind it.
        route: The route that it answers for, so that requests are counted under that route.
    """

    def __init__(self, app: ASGIApp, route: Any) -> None:
        self._app = app
        self._route = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        headers = _cacheable_headers(scope)
        shape = headers and _shape(
            scope["query_string"], headers.get(b"accept", b""), headers.get(b"accept-encoding", b"")
        )
        if not headers or not shape:
            await self._app(scope, receive, send)
            return
        body = _Body(receive)
        services = scope["app"].state.services
        answer = await services.responses.get(response_key(await body.read(), *shape))
        if answer is None:
            await self._app(scope, body, send)
            return
        scope["route"] = self._route
        services.pipeline.counts["reused"] += answer.texts
        note(items=answer.texts)
        await _send(answer, headers.get(b"if-none-match", b"").decode("latin-1"), send)


class _Body:
    """A request body that is read once and then replayed to the app.

    Args:
        receive: Where it comes from.
    """

    __slots__ = ("_receive", "_seen")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._seen: list[Message | Exception] = []

    async def read(self) -> bytes:
        """The whole body; empty if reading it fails, which the app then reports."""
        parts: list[bytes] = []
        more = True
        while more:
            try:
                message = await self._receive()
            except Exception as error:
                self._seen.append(error)
                return b""
            self._seen.append(message)
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        return b"".join(parts)

    async def __call__(self) -> Message:
        """The next message, from the part that was read ahead if any is left."""
        if not self._seen:
            return await self._receive()
        seen = self._seen.pop(0)
        if isinstance(seen, Exception):
            raise seen
        return seen


def _cacheable_headers(scope: Scope) -> dict[bytes, bytes] | None:
    """The headers of a request that may be in the cache; ``None`` for any other request."""
    if scope["type"] != "http" or scope["path"] != _PATH or scope["method"] != "POST":
        return None
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"")
    if not length.isdigit() or int(length) > LONGEST_BODY or len(headers) < len(scope["headers"]):
        # A chunked body, a long body, or a repeated header.
        return None
    kind = headers.get(b"content-type", b"")
    return headers if kind.partition(b";")[0].strip().lower() == _JSON else None


@lru_cache(maxsize=64)
def _shape(query: bytes, accept: bytes, accept_encoding: bytes) -> Sequence[str]:
    """The format and encoding that the route would choose; empty if the query is ambiguous."""
    asked = parse_qs(query.decode("latin-1"), keep_blank_values=True).pop("format", [])
    known = [name for name in FORMATS if asked == [name]]
    if asked and not known:
        return ()
    try:
        shape = negotiate(accept.decode("latin-1"), known[0] if known else None)
    except HTTPException:
        return ()
    return shape, choose_encoding(accept_encoding.decode("latin-1"))


async def _send(answer: CachedResponse, held: str, send: Send) -> None:
    unchanged = bool(held) and is_current(held, answer.etag)
    status = 304 if unchanged else 200
    # A copy: outer middleware appends to it.
    headers = list(answer.unchanged_headers if unchanged else answer.headers)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if unchanged else answer.content})
