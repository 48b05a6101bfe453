"""Authentication in front of every route: API keys and rate limits, where they are configured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import error_answer
from service.logs import note
from service.security.keys import KeyStore
from service.security.rates import RateLimits, parse_rate
from service.security.rules import path_of, rule_of
from service.settings import Settings, is_loopback
from syntax.errors import AccessError, UnauthorizedError

OPEN_PATHS: Final = frozenset(
    {
        *("/", "/health/live", "/health/ready", "/openapi.json", "/docs", "/redoc"),
        *("/docs/swagger.js", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css"),
        *("/docs/redoc.js", "/docs/redoc.standalone.js", "/docs/favicon.png"),
    }
)
"""Paths that need no key and do not count against a rate limit: supervisors and browsers cannot
send a key. Without one they tell only the release and which part of the service fails.
"""

OPEN_FOLDER: Final = "/page/"

ROLE_IN_SCOPE: Final = "parsebank.role"
"""Key of the caller's role in a request's scope; absent where no key is needed."""

Headers = list[tuple[bytes, bytes]]

_FORWARDED: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip"})


class Authenticator:
    """Checks keys, roles and rate limits of requests; belongs to one app.

    An invalid keys file or rate limit stops the service at its start.
    """

    def __init__(self, settings: Settings) -> None:
        self._keys = KeyStore(settings.keys_file) if settings.keys_file is not None else None
        self._rate = parse_rate(settings.rate_limit) if settings.rate_limit is not None else None
        self._limits = RateLimits()

    def check(self, scope: Scope) -> Headers:
        """Check key, rate and role of a request, in this order; returns rate limit headers."""
        if is_open(path_of(scope)):
            return []
        key = self._keys.find(_secret(scope)) if self._keys is not None else None
        if key is not None:
            note(key=key.name)
        rate = self._rate if key is None or key.rate is None else key.rate
        client = scope.get("client")
        address = client[0] if client else "local"
        status = None
        if rate is not None:
            status = self._limits.hit(rate, address if key is None else key.name)
        if key is not None:
            key.check_role(rule_of(scope["method"], path_of(scope)).role)
            scope[ROLE_IN_SCOPE] = key.role
        return [] if status is None else status.headers()

    def trusts(self, scope: Scope) -> bool:
        """True if a request to an open path may see how the service is configured.

        With keys, the request must carry a valid one. Without, it must come from this machine and
        not through a proxy.
        """
        if self._keys is not None:
            try:
                self._keys.find(_secret(scope))
            except UnauthorizedError:
                return False
            return True
        forwarded = any(name in _FORWARDED for name, _ in scope["headers"])
        client = scope.get("client")
        return not forwarded and (client is None or is_loopback(client[0]))


class CheckMiddleware:
    """ASGI middleware that checks requests before anything else of them is read.

    ``check`` gives headers to add to the response; the error that it raises is the answer.
    """

    def __init__(self, app: ASGIApp, check: Callable[[Scope], Headers]) -> None:
        self._app = app
        self._check = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            headers = self._check(scope)
        except AccessError as error:
            await error_answer(error)(scope, receive, send)
            return

        async def announced(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *headers]
            await send(message)

        await self._app(scope, receive, announced if headers else send)


def is_open(path: str) -> bool:
    """True for a path that needs no key.

    >>> is_open("/page/main.js"), is_open("/parse")
    (True, False)
    """
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER)


def _secret(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-api-key":
            return str(value.decode("latin-1"))
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return str(value[7:].strip().decode("latin-1"))
    raise UnauthorizedError(
        "this service needs an API key and none came; send `Authorization: Bearer KEY` or "
        "`X-API-Key: KEY`"
    )
