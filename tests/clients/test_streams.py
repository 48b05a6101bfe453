"""Answers that come line by line."""

from __future__ import annotations

import json

import pytest

from clients import AsyncClient, Client
from clients.client.failures import ServiceUnreachableError
from clients.client.results import ItemError, ParsedItem
from clients.client.retries import Retries
from clients.client.streams import AnswerReader, Event, EventDecoder, LineBuffer
from syntax.errors import OverloadedError, StoreError

HEAD = {"parser": {"name": "p", "fingerprint": "f"}, "tokenizer": None}
WORD = {"id": 1, "form": "It", "head": 0, "deprel": "root", "start_char": 0, "end_char": 2}
ITEM = {
    "index": 1,
    "key": "k",
    "cached": False,
    "text": "It",
    "sentences": [
        {
            "start_char": 0,
            "end_char": 2,
            "words": [WORD],
            "tokens": [{"form": "It", "start_char": 0, "end_char": 2, "word_ids": [1]}],
        }
    ],
}
FAILED = {"index": 0, "error": {"error_type": "empty_text", "message": "empty", "detail": {}}}
DONE = {"done": {"items": 2, "failed": 1}}


def lines(*contents: object) -> bytes:
    return b"".join(json.dumps(content).encode() + b"\n" for content in contents)


def test_line_buffer_splits_only_at_line_feeds():
    content = '{"a": "x\u2028y\x85z"}\r\n{"b": 2}\nrest'.encode()
    for size in (1, 3, 100):
        buffer = LineBuffer()
        chunks = [content[at : at + size] for at in range(0, len(content), size)]
        found = [line for chunk in chunks for line in buffer.feed(chunk)]
        assert found == ['{"a": "x\u2028y\x85z"}', '{"b": 2}']


def test_answer_reader_returns_texts_as_they_complete():
    reader = AnswerReader()
    assert reader.feed(lines(HEAD)) == []
    assert not reader.began
    ((place, item),) = reader.feed(lines(ITEM))
    assert (place, item.parse.form, item.json["key"]) == (1, ["It"], "k")
    ((place, failed),) = reader.feed(lines(FAILED, DONE))
    assert (place, failed.error_type) == (0, "empty_text")
    reader.close()


def test_answer_reader_raises_for_truncated_and_failed_answers():
    reader = AnswerReader()
    reader.feed(lines(HEAD, ITEM))
    with pytest.raises(ServiceUnreachableError, match="broke off"):
        reader.close()
    error = {"error_type": "store", "message": "full", "detail": {"path": "x"}}
    with pytest.raises(StoreError, match="full"):
        reader.feed(lines({"error": error}))


def test_parse_iter_retries_only_before_the_first_text(script, answer):
    busy = answer(429, {"error_type": "overloaded", "message": "busy"}, {"retry-after": "0"})
    whole = answer(200, lines(HEAD, ITEM, FAILED, DONE))
    retries = Retries(first=0.01)
    with Client(script.url, retries=retries) as client:
        script.play(busy, answer(0), whole)
        found = dict(client.parse_iter(texts=["", "It"]))
        assert isinstance(found[0], ItemError)
        assert isinstance(found[1], ParsedItem)
        assert len(script.requests) == 3
        script.play(answer(200, lines(HEAD, ITEM)))
        stream = client.parse_iter(texts=["", "It"])
        assert next(stream)[0] == 1
        with pytest.raises(ServiceUnreachableError):
            next(stream)
        assert len(script.requests) == 4
        script.play(busy)
        with pytest.raises(OverloadedError):
            next(client.parse_iter("It"))


TEXTS = ["Time flies.", "", "It\u2028rains."]


def test_parse_iter_yields_what_parse_returns(tmp_path):
    with Client.embedded(str(tmp_path), workers=1, job_workers=0) as client:
        whole = client.parse(texts=TEXTS)
        streamed = dict(client.parse_iter(texts=TEXTS))
    assert sorted(streamed) == [0, 1, 2]
    for place, item in enumerate(whole):
        assert item.json.keys() == streamed[place].json.keys() - {"index"}
        if isinstance(item, ParsedItem):
            assert item.parse == streamed[place].parse


async def test_async_parse_iter_yields_all_texts(tmp_path):
    async with AsyncClient.embedded(str(tmp_path), workers=1, job_workers=0) as client:
        streamed = {place: item async for place, item in client.parse_iter(texts=TEXTS)}
    assert [type(streamed[place]) for place in range(3)] == [ParsedItem, ItemError, ParsedItem]


def test_continued_sentences_tokens_and_labels_are_decoded(tmp_path):
    settings = {"workers": 1, "job_workers": 0, "max_words_per_sentence": 3}
    with Client.embedded(str(tmp_path), **settings) as client:
        tokens = [["one", "two", "don't", "four"]]
        (item,) = client.parse(
            tokens=tokens,
            mode="retokenize",
            long_sentences="split",
            token_labels=[["O", "O", "B-X", "O"]],
            deadline_seconds=20,
        ).parsed()
    assert item.parse.misc is not None
    assert [misc is not None for misc in item.parse.misc] == [False, False, True, False, False]
    assert item.parse.sentence_first_word == [0, 2]  # no token is cut
    assert item.token_words == [[0], [1], [2, 3], [4]]
    assert item.word_labels == ["O", "O", "B-X", "I-X", "O"]


def decode_events(text: str) -> list[Event]:
    decoder = EventDecoder()
    return [event for line in text.split("\n") if (event := decoder.feed(line)) is not None]


def test_event_decoder_ends_events_at_blank_lines():
    assert decode_events('event: progress\ndata: {"a": 1}\n\nevent: end\ndata: {}\n\n') == [
        Event("progress", '{"a": 1}'),
        Event("end", "{}"),
    ]


def test_event_decoder_joins_data_lines():
    assert decode_events("data:  a\ndata:b\n\n") == [Event("message", " a\nb")]


def test_event_decoder_ignores_comments_ids_and_empty_events():
    assert decode_events(": keep-alive\n\nid: 7\nretry: 100\n\nevent: x\n\n") == []


def test_event_decoder_resets_the_name_after_an_event():
    assert decode_events("event: a\ndata: 1\n\ndata: 2\n\n") == [
        Event("a", "1"),
        Event("message", "2"),
    ]


def test_event_decoder_drops_an_unfinished_event():
    assert decode_events("event: end\ndata: {}") == []
