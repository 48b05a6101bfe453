"""What both clients start from."""

from __future__ import annotations

import json
import logging
from typing import Final

import httpx

from clients.events import Event
from clients.jobs import Job, decode_job

URL: Final = "http://127.0.0.1:8000"
"""Where `parsebank serve` listens unless told otherwise."""

EMBEDDED_URL: Final = "http://embedded.parsebank"
"""A name for an app in this process; nothing resolves it."""

TIMEOUT: Final = 60.0
"""Seconds to wait for an answer: twice the service's own deadline for parsing."""

POLL_SECONDS: Final = 0.5
"""How often a job is asked for where its events cannot be streamed."""


def quiet_httpx() -> None:
    """Keep one log line per request out of programs that log at INFO; an own level stays."""
    for name in ("httpx", "httpcore"):
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.WARNING)


def is_event_stream(response: httpx.Response) -> bool:
    """Whether progress is really streamed; anything else means: ask again and again."""
    kind = response.headers.get("content-type", "")
    return response.is_success and kind.startswith("text/event-stream")


def progress(event: Event | None) -> Job | None:
    """The job that a progress event carries; the last event may carry none."""
    return decode_job(json.loads(event.data)) if event and event.data else None
