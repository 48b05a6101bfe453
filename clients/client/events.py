"""Server-sent events, line by line (WHATWG HTML, section 9.2.6)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name and its data, lines joined by newlines."""

    name: str
    data: str


@dataclass(slots=True)
class EventDecoder:
    r"""Collects lines until a blank one ends the event.

    >>> decoder = EventDecoder()
    >>> [decoder.feed(line) for line in ("event: end", "data: {}", "")][-1]
    Event(name='end', data='{}')
    """

    _name: str = "message"
    _data: list[str] = field(default_factory=list)

    def feed(self, line: str) -> Event | None:
        """The event that this line completes; comments and unknown fields are passed over."""
        if not line:
            return self._complete()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        return None

    def _complete(self) -> Event | None:
        event = Event(self._name, "\n".join(self._data)) if self._data else None
        if self._name == "end" and event is None:
            event = Event("end", "")
        self._name, self._data = "message", []
        return event
