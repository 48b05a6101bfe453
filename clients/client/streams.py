"""Answers that arrive in chunks: the texts of ``POST /parse`` and the progress of a job."""

from __future__ import annotations

from dataclasses import dataclass, field

import httpx

from clients.client.failures import ServiceUnreachableError, named_error
from clients.client.jobs import Job, decode_job
from clients.client.results import ItemError, ParsedItem, decode_item
from syntax.strict_json import parse_json

NumberedItem = tuple[int, ParsedItem | ItemError]


class LineBuffer:
    r"""Cuts chunks of bytes at line feeds only.

    ``str.splitlines``, which httpx uses, also cuts at U+2028 and similar characters, which a JSON
    string may hold unescaped.

    >>> buffer = LineBuffer()
    >>> buffer.feed(b'{"a": 1}\n{"b"'), buffer.feed(b": 2}\n")
    (['{"a": 1}'], ['{"b": 2}'])
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[str]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return [line.removesuffix(b"\r").decode("utf-8") for line in lines]


class AnswerReader:
    """Reads the NDJSON of ``POST /parse``: a head, a line per text, and an end."""

    def __init__(self) -> None:
        self.began = False
        self._ended = False
        self._lines = LineBuffer()

    def feed(self, chunk: bytes) -> list[NumberedItem]:
        """Texts that this chunk completes; raises the error that ended the whole request."""
        items: list[NumberedItem] = []
        for line in map(parse_json, self._lines.feed(chunk)):
            if "index" in line:
                items.append((line["index"], decode_item(line)))
            elif "error" in line:
                raise named_error(line["error"])
            else:
                self._ended = self._ended or "done" in line
        self.began = self.began or bool(items)
        return items

    def close(self) -> None:
        """Raise `ServiceUnreachableError` if the end of the answer is missing."""
        if not self._ended:
            raise ServiceUnreachableError(
                "the answer broke off before its end; ask again: what was parsed is kept"
            )


@dataclass(frozen=True, slots=True)
class Event:
    """A server-sent event; the lines of ``data`` are joined by newlines."""

    name: str
    data: str


@dataclass(slots=True)
class EventDecoder:
    r"""Collects the lines of an event until a blank line ends it (WHATWG HTML, section 9.2.6).

    >>> decoder = EventDecoder()
    >>> [decoder.feed(line) for line in ("event: end", "data: {}", "")][-1]
    Event(name='end', data='{}')
    """

    _name: str = "message"
    _data: list[str] = field(default_factory=list)

    def feed(self, line: str) -> Event | None:
        """Event that this line completes; comments and unknown fields are ignored."""
        if not line:
            event = Event(self._name, "\n".join(self._data)) if self._data else None
            if self._name == "end" and event is None:
                event = Event("end", "")
            self._name, self._data = "message", []
            return event
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        return None


def is_event_stream(response: httpx.Response) -> bool:
    kind = response.headers.get("content-type", "")
    return response.is_success and kind.startswith("text/event-stream")


class JobEvents:
    """Reads the stream of a job's progress."""

    def __init__(self) -> None:
        self._lines = LineBuffer()
        self._events = EventDecoder()

    def feed_jobs(self, chunk: bytes) -> list[Job]:
        """States of the job that this chunk completes; the last event may carry none."""
        events = map(self._events.feed, self._lines.feed(chunk))
        return [decode_job(parse_json(event.data)) for event in events if event and event.data]
