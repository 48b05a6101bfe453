from __future__ import annotations

from clients.client.events import Event, EventDecoder


def decode(text: str) -> list[Event]:
    decoder = EventDecoder()
    return [event for line in text.split("\n") if (event := decoder.feed(line)) is not None]


def test_events_end_at_blank_lines():
    assert decode('event: progress\ndata: {"a": 1}\n\nevent: end\ndata: {}\n\n') == [
        Event("progress", '{"a": 1}'),
        Event("end", "{}"),
    ]


def test_data_lines_are_joined_and_one_space_after_the_colon_is_dropped():
    assert decode("data:  a\ndata:b\n\n") == [Event("message", " a\nb")]


def test_comments_ids_and_empty_events_are_passed_over():
    assert decode(": keep-alive\n\nid: 7\nretry: 100\n\nevent: x\n\n") == []


def test_a_name_does_not_leak_into_the_next_event():
    assert decode("event: a\ndata: 1\n\ndata: 2\n\n") == [Event("a", "1"), Event("message", "2")]


def test_an_unfinished_event_is_none():
    assert decode("event: end\ndata: {}") == []
