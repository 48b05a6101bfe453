"""Authentication in front of every route: API keys and rate limits, where they are configured."""

from __future__ import annotations

from typing import Final

from limits import RateLimitItem
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import error_answer
from service.logs import note
from service.security.keys import ApiKey, KeyStore
from service.security.rates import RateLimits, RateLimitStatus, parse_rate
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
send a key. Without one they tell only the release and which part of the service fails."""

OPEN_FOLDER: Final = "/page/"
"""Files of the web page, which are open too; what the page asks for is not."""

ROLE_IN_SCOPE: Final = "parsebank.role"
"""Where the scope of an admitted request has the role of its key; absent where no key is needed."""

_FORWARDED: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip"})


class Authenticator:
    """Checks keys, roles and rate limits of requests; belongs to one app.

    Args:
        settings: The keys file and the rate limit. An invalid one stops the service at its start.
    """

    def __init__(self, settings: Settings) -> None:
        self._keys = KeyStore(settings.keys_file) if settings.keys_file is not None else None
        self._rate = parse_rate(settings.rate_limit) if settings.rate_limit is not None else None
        self._limits = RateLimits()

    def admit(self, scope: Scope) -> RateLimitStatus | None:
        """Admit a request; returns the status of its rate limit, if there is one.

        Raises:
            UnauthorizedError: The request has no valid key.
            RateLimitError: The request exceeds the rate limit.
            ForbiddenError: The key lacks the role that the route needs.
        """
        key = self._keys.find(_secret(scope)) if self._keys is not None else None
        if key is not None:
            note(key=key.name)
        rate = self._rate_of(key)
        who = _address(scope) if key is None else key.name
        status = None if rate is None else self._limits.hit(rate, who)
        if key is not None:
            key.check_role(rule_of(scope["method"], path_of(scope)).role)
            scope[ROLE_IN_SCOPE] = key.role
        return status

    def trusts(self, scope: Scope) -> bool:
        """Whether a request to an open path may see how the service is configured.

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

    def _rate_of(self, key: ApiKey | None) -> RateLimitItem | None:
        return self._rate if key is None or key.rate is None else key.rate


class AuthMiddleware:
    """ASGI middleware that admits requests, or answers 401, 403 or 429.

    Args:
        app: The app behind it.
        authenticator: Checks the requests.
    """

    def __init__(self, app: ASGIApp, authenticator: Authenticator) -> None:
        self._app = app
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the app, or refuse it."""
        if scope["type"] != "http" or is_open(path_of(scope)):
            await self._app(scope, receive, send)
            return
        try:
            status = self._authenticator.admit(scope)
        except AccessError as error:
            await error_answer(error)(scope, receive, send)
            return
        await self._app(scope, receive, _announced(send, status) if status else send)


def is_open(path: str) -> bool:
    """Whether a path needs no key.

    >>> is_open("/page/main.js"), is_open("/parse")
    (True, False)
    """
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER)


def _secret(scope: Scope) -> str:
    """The key in a request.

    Raises:
        UnauthorizedError: The request has no key.
    """
    for name, value in scope["headers"]:
        if name == b"x-api-key":
            return str(value.decode("latin-1"))
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return str(value[7:].strip().decode("latin-1"))
    raise UnauthorizedError(
        "this service needs an API key and none came; send `Authorization: Bearer KEY` or "
        "`X-API-Key: KEY`"
    )


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else "local"


def _announced(send: Send, status: RateLimitStatus) -> Send:
    async def announced(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *status.headers()]
        await send(message)

    return announced
