"""Keeps pages of other sites from using the service through a visitor's browser.

A page may not read the answers to its requests, but a request that writes has done its work by
then. So routes that write refuse requests of other origins. Browsers do not name the origin of a
GET to another machine over plain HTTP: no GET writes.

A page can also let its own name point to the service's address once it is loaded (DNS rebinding);
it then has the same origin and may read everything. The ``Host`` header still has that name, so
names that are not configured are refused. Addresses cannot be rebound.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Final

from starlette.types import Scope

from service.security.rules import path_of, rule_of
from service.settings import Settings
from syntax.errors import ForbiddenError

_OWN_SITE: Final = frozenset({"same-origin", "none"})
"""``none``: the user typed the address, or followed a bookmark."""

_HEADERS: Final = frozenset({b"host", b"origin", b"sec-fetch-site"})


class OriginCheck:
    """Refuses unknown names of the service, and writing by pages of other origins.

    Programs that are not browsers send no origin, and are admitted. A service with keys is known
    by any name unless some are listed: a page has no key to send. Starlette's
    ``TrustedHostMiddleware`` takes only listed addresses, and refuses with 400.
    """

    def __init__(self, settings: Settings) -> None:
        listed = settings.allowed_hosts or (["*"] if settings.keys_file is not None else [])
        self._names = frozenset(map(_name, ["localhost", settings.host, *listed]))
        self._ends = tuple(name[1:] for name in self._names if name.startswith("*."))
        self._is_ours = lru_cache(maxsize=1024)(self._has_name)
        self._origins = frozenset(settings.cors_origins)

    def check(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        """Refuse a request with a `ForbiddenError`; no response gets headers for this."""
        sent = {name: value for name, value in scope["headers"] if name in _HEADERS}
        host = sent.get(b"host", b"").decode("latin-1")
        # What the connection came to: an address, or the name of an app in this process.
        server = scope.get("server")
        is_ours = not host or self._is_ours(host)
        if not is_ours and (server is None or _name(host) != _name(server[0] or "")):
            raise ForbiddenError(
                f"the request is for the host {host!r}, by which this service is not known; use "
                "its address, or add the name to allowed_hosts (PARSEBANK_ALLOWED_HOSTS="
                "'[\"...\"]')",
                host=host,
            )
        origin = sent.get(b"origin", b"").decode("latin-1")
        is_allowed = origin in self._origins or "*" in self._origins
        if is_allowed or rule_of(scope["method"], path_of(scope)).role == "read":
            return []
        # Browsers say by `Sec-Fetch-Site` whether a page is of another origin, also where a proxy
        # has changed `Host`; older ones, and those without TLS, say by `Origin`.
        site = sent.get(b"sec-fetch-site", b"").decode("latin-1")
        is_own = not origin or origin.lower().endswith(f"://{host.lower()}")
        if not (site in _OWN_SITE if site else is_own):
            raise ForbiddenError(
                f"a page of another origin ({origin or 'it does not say which'}) may not do this; "
                "if it should, add its origin to cors_origins (PARSEBANK_CORS_ORIGINS="
                "'[\"https://...\"]')",
                origin=origin,
            )
        return []

    def _has_name(self, host: str) -> bool:
        name = _name(host)
        if "*" in self._names or name in self._names or name.endswith(self._ends):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _name(host: str) -> str:
    """Host without its port.

    >>> [_name(host) for host in ("Localhost:8000", "[::1]:8000", "[::1]", "::1", "a.example.")]
    ['localhost', '::1', '::1', '::1', 'a.example']
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    name = host if host.count(":") > 1 else host.partition(":")[0]
    return name.lower().rstrip(".")
