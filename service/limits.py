"""The request body limit, for bodies with a length and without one."""

from __future__ import annotations

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import error_response

UNLIMITED_SUFFIX = "/backfill"
"""Routes whose bodies are streamed to disk, with limits of their own."""


class BodyLimit:
    """ASGI middleware that answers 413 to bodies over a limit, without reading them.

    Args:
        app: The app behind it.
        max_bytes: The limit.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http" or scope["path"].endswith(UNLIMITED_SUFFIX):
            await self._app(scope, receive, send)
        elif _declared_length(scope) > self._max_bytes:
            await self._refusal()(scope, receive, send)
        else:
            await self._app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Receive:
        """Chunked bodies declare no length, so they are counted as they come."""
        left = self._max_bytes

        async def counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._advice())
            return message

        return counted

    def _refusal(self) -> ASGIApp:
        body = {
            "error_type": "request_entity_too_large",
            "message": self._advice(),
            "detail": {"limit": self._max_bytes},
        }
        return error_response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, body)

    def _advice(self) -> str:
        return (
            f"the body has more than {self._max_bytes} bytes; send fewer texts at once, use a "
            "backfill job, or raise max_body_bytes"
        )


def _declared_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0
