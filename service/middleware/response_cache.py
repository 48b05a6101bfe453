"""The response cache in front of ``POST /parse``."""

from __future__ import annotations

from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.logs import note
from service.pipeline.response_cache import CachedResponse, Origin, ResponseCache, response_key

LONGEST_BODY: Final = 262_144
"""Bytes of the longest request that is looked up; hashing them takes 0.3 ms."""

ORIGIN: Final = "response_origin"
"""Name in the request's state under which a route leaves the `Origin` of a response to keep."""

_PATH: Final = "/parse"
_JSON: Final = b"application/json"


class ResponseCacheMiddleware:
    """ASGI middleware that keeps responses, and answers repeated requests with them.

    It answers a request only if its bytes, its query, and the headers that choose format and
    encoding equal those of a request that the app has answered; every other request goes to the
    app. A response is kept as it was sent, if the route has left its `ORIGIN`. The middleware
    around it checks keys, rates and sizes.

    Args:
        app: The app behind it, which compresses.
        route: The route that it answers for, so that requests are counted under that route.
    """

    def __init__(self, app: ASGIApp, route: Any) -> None:
        self._app = app
        self._route = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        headers = _cacheable_headers(scope)
        if headers is None:
            await self._app(scope, receive, send)
            return
        body = _Body(receive)
        services = scope["app"].state.services
        cache: ResponseCache = services.responses
        chosen = (headers.get(name, b"") for name in (b"accept", b"accept-encoding"))
        key = response_key(await body.read(), scope["query_string"], *chosen)
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
