"""What both clients start from."""

from __future__ import annotations

import logging
from typing import Final

import httpx

from clients.client.events import EventDecoder
from clients.client.jobs import Job, decode_job
from clients.client.streams import LineBuffer
from syntax.strict_json import parse_json

URL: Final = "http://127.0.0.1:8000"
"""Where `parsebank serve` listens unless told otherwise."""

API_KEY: Final = "PARSEBANK_API_KEY"
"""Variable that holds the key for the command line."""

EMBEDDED_URL: Final = "http://embedded.parsebank"
"""A name for an app in this process; nothing resolves it."""

TIMEOUT: Final = 60.0
"""Seconds to wait for an answer: twice the service's own deadline for parsing."""

POLL_SECONDS: Final = 0.5
"""How often a job is asked for where its events cannot be streamed."""


def key_headers(api_key: str | None) -> dict[str, str]:
    """What shows the service who asks; nothing without a key.

    >>> key_headers("pb_secret")
    {'Authorization': 'Bearer pb_secret'}
    """
    return {} if api_key is None else {"Authorization": f"Bearer {api_key}"}


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


class JobEvents:
    """Reads the stream of a job's progress."""

    def __init__(self) -> None:
        self._lines = LineBuffer()
        self._events = EventDecoder()

    def feed_jobs(self, chunk: bytes) -> list[Job]:
        """The states of the job that this chunk completes; the last event may carry none."""
        events = map(self._events.feed, self._lines.feed(chunk))
        return [decode_job(parse_json(event.data)) for event in events if event and event.data]
