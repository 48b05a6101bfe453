"""One request to an app by ASGI itself: what is sent when, and leaving in the middle.

`httpx.ASGITransport` gives an answer only when it is whole.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Message


class Exchange:
    """A POST and its answer.

    Args:
        app: The app.
        target: Path and query.
        body: Sent as JSON, unless it is bytes, or a list of messages, after which nothing comes.
        headers: Beside length and type.
        leave_after: Pieces of body after which the caller goes away; by default it stays.

    Attributes:
        status: Of the answer.
        headers: Of the answer.
        bodies: The pieces of body, as they were sent.
    """

    def __init__(
        self,
        app: ASGIApp,
        target: str,
        body: Any,
        headers: Mapping[str, str] | None = None,
        leave_after: int | None = None,
    ) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.bodies: list[bytes] = []
        self._app = app
        self._target = target
        self._headers = {"content-type": "application/json", **(headers or {})}
        if isinstance(body, list):
            self._messages = [*body]
        else:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self._messages = [{"type": "http.request", "body": content, "more_body": False}]
            self._headers["content-length"] = str(len(content))
        self._leave_after = leave_after
        self._left = asyncio.Event()

    def leave(self) -> None:
        """Go away now."""
        self._left.set()

    async def run(self) -> None:
        """Send the request, and take the answer."""
        path, _, query = self._target.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in self._headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
            "state": {},
        }
        await self._app(scope, self._receive, self._send)

    async def _receive(self) -> Message:
        if self._messages:
            return self._messages.pop(0)
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        elif message.get("body"):
            self.bodies.append(message["body"])
        if self._leave_after is not None and len(self.bodies) >= self._leave_after:
            self._left.set()
            # As a server does, which takes nothing more.
            await asyncio.sleep(0)
