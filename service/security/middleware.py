"""The gate in front of every route: a key if keys are asked for, and a rate if there is a limit."""

from __future__ import annotations

from typing import Final

from limits import RateLimitItem
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import error_answer
from service.logs import note
from service.security.keys import ApiKey, KeyRing
from service.security.rates import RateLimits, Standing, parse_rate
from service.security.rules import path_of, rule_of
from service.settings import Settings, is_loopback
from syntax.errors import AccessError, UnauthorizedError

OPEN_PATHS: Final = frozenset(
    {"/health/live", "/health/ready", "/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json"}
)
"""What needs no key and is not counted: supervisors and browsers cannot send one, and without one
nothing here tells more than which release runs, and which part of it is out of order."""


_FORWARDED: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip"})


class Gatekeeper:
    """Who is admitted; belongs to one app.

    Args:
        settings: Where the keys are, and the rate limit.

    Raises:
        SpecError: The keys file or the rate limit is none. So the service does not even start.
    """

    def __init__(self, settings: Settings) -> None:
        self._keys = KeyRing(settings.keys_file) if settings.keys_file is not None else None
        self._rate = parse_rate(settings.rate_limit) if settings.rate_limit is not None else None
        self._limits = RateLimits()

    def admit(self, scope: Scope) -> Standing | None:
        """Admit a request; its standing if it is under a limit.

        Raises:
            UnauthorizedError: It needs a key and has none that is valid.
            RateLimitError: It is one too many.
            ForbiddenError: Its key has not the role that the route takes.
        """
        key = self._keys.find(_secret(scope)) if self._keys is not None else None
        if key is not None:
            note(key=key.name)
        rate = self._rate_of(key)
        who = _address(scope) if key is None else key.name
        standing = None if rate is None else self._limits.hit(rate, who)
        if key is not None:
            key.check_role(rule_of(scope["method"], path_of(scope)).role)
        return standing

    def trusts(self, scope: Scope) -> bool:
        """Whether a request to an open path may see how the service is set up.

        It may with a key; without keys, from this machine and not through a proxy.
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


class Gate:
    """ASGI middleware that admits requests, or answers 401, 403 or 429.

    Args:
        app: The app behind it.
        keeper: Decides.
    """

    def __init__(self, app: ASGIApp, keeper: Gatekeeper) -> None:
        self._app = app
        self._keeper = keeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or path_of(scope) in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        try:
            standing = self._keeper.admit(scope)
        except AccessError as error:
            await error_answer(error)(scope, receive, send)
            return
        await self._app(scope, receive, _announced(send, standing) if standing else send)


def _secret(scope: Scope) -> str:
    """The key that a request carries.

    Raises:
        UnauthorizedError: It carries none.
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


def _announced(send: Send, standing: Standing) -> Send:
    async def announced(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *standing.headers()]
        await send(message)

    return announced
