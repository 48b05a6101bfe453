"""Run the app under uvicorn."""

from __future__ import annotations

import ipaddress

import uvicorn

from service.app import create_app
from service.logs import configure_logging
from service.settings import Settings
from syntax.errors import SpecError


def run_server(settings: Settings) -> None:
    """Serve until interrupted.

    Raises:
        SpecError: The address is public and `allow_remote` is not set.
    """
    check_bind(settings)
    configure_logging(settings.log_level)
    uvicorn.run(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        log_level=settings.log_level,
        access_log=settings.log_level == "debug",
        timeout_graceful_shutdown=10,
    )


def check_bind(settings: Settings) -> None:
    """Refuse a public address unless it is allowed on purpose.

    Raises:
        SpecError: See above.
    """
    if not settings.allow_remote and not _is_loopback(settings.host):
        raise SpecError(
            f"{settings.host} is reachable from other machines, and the service has no API keys: "
            "whoever reaches it can read and write the store. Bind 127.0.0.1, or pass "
            "--allow-remote (PARSEBANK_ALLOW_REMOTE=true) behind a proxy with authentication",
            host=settings.host,
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
