"""The short way of requests to ``POST /parse`` whose answers are kept as ready bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.logs import note
from service.pipeline.ready import ReadyAnswer, ready_key
from service.render.etag import is_current
from service.render.negotiate import FORMATS, choose_encoding, negotiate

LONGEST_BODY: Final = 262_144
"""Bytes of a request up to which it is looked for; to hash them takes 0.3 ms."""

_PATH: Final = "/parse"
_JSON: Final = b"application/json"


class Shortcut:
    """ASGI middleware that answers from `service.pipeline.ready`, before the app sees a request.

    All that is in doubt is left to the app: a request is either word for word one that the app
    has answered, or none of ours. Keys, rates and sizes are looked at by the middleware around.

    Args:
        app: The app behind it.
        route: The route that is cut short, for those who count requests by route.
    """

    def __init__(self, app: ASGIApp, route: Any) -> None:
        self._app = app
        self._route = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        headers = _headers_of_ours(scope)
        shape = headers and _shape(
            scope["query_string"], headers.get(b"accept", b""), headers.get(b"accept-encoding", b"")
        )
        if not headers or not shape:
            await self._app(scope, receive, send)
            return
        body = _Body(receive)
        services = scope["app"].state.services
        answer = await services.ready.get(ready_key(await body.read(), *shape))
        if answer is None:
            await self._app(scope, body, send)
            return
        scope["route"] = self._route
        services.pipeline.counts["reused"] += answer.texts
        note(items=answer.texts)
        await _send(answer, headers.get(b"if-none-match", b"").decode("latin-1"), send)


class _Body:
    """A request body that is read ahead, and then given to whoever asks for it.

    Args:
        receive: Where it comes from.
    """

    __slots__ = ("_receive", "_seen")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._seen: list[Message | Exception] = []

    async def read(self) -> bytes:
        """The whole body; what cannot be read is left to the app, which knows how to answer."""
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
        """The next message, as if nobody had looked."""
        if not self._seen:
            return await self._receive()
        seen = self._seen.pop(0)
        if isinstance(seen, Exception):
            raise seen
        return seen


def _headers_of_ours(scope: Scope) -> dict[bytes, bytes] | None:
    """The headers of a request that may have been answered before; ``None`` for any other."""
    if scope["type"] != "http" or scope["path"] != _PATH or scope["method"] != "POST":
        return None
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"")
    if not length.isdigit() or int(length) > LONGEST_BODY or len(headers) < len(scope["headers"]):
        # A chunked body, a long one, or a header that came twice.
        return None
    kind = headers.get(b"content-type", b"")
    return headers if kind.partition(b";")[0].strip().lower() == _JSON else None


@lru_cache(maxsize=64)
def _shape(query: bytes, accept: bytes, accept_encoding: bytes) -> Sequence[str]:
    """Format and encoding, as the route would choose them; nothing if that is in doubt."""
    asked = parse_qs(query.decode("latin-1"), keep_blank_values=True).pop("format", [])
    known = [name for name in FORMATS if asked == [name]]
    if asked and not known:
        return ()
    try:
        shape = negotiate(accept.decode("latin-1"), known[0] if known else None)
    except HTTPException:
        return ()
    return shape, choose_encoding(accept_encoding.decode("latin-1"))


async def _send(answer: ReadyAnswer, held: str, send: Send) -> None:
    unchanged = bool(held) and is_current(held, answer.etag)
    status = 304 if unchanged else 200
    # A list of its own: middleware on the way out adds to it.
    headers = list(answer.unchanged_headers if unchanged else answer.headers)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if unchanged else answer.content})
