"""The app of a client in its own process, which finds it through the group ``parsebank.app``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.workers.process import start_ahead

if TYPE_CHECKING:
    from fastapi import FastAPI


def create_app(**settings: Any) -> FastAPI:
    """Build the app, whose import takes a second.

    Without job workers the client parses texts: a process for its first model starts meanwhile.
    """
    if settings.get("job_workers") == 0:
        start_ahead()
    from service.app import create_app as build

    return build(**settings)
