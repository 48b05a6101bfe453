"""Answers that come line by line."""

from __future__ import annotations

import json

import pytest

from clients import Client
from clients.client.failures import ServiceUnreachableError
from clients.client.results import ItemError, ParsedItem
from clients.client.retries import Retries
from clients.client.streams import Event, EventDecoder, LineBuffer
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
        with pytest.raises(ServiceUnreachableError, match="broke off"):
            next(stream)
        assert len(script.requests) == 4
        error = {"error_type": "store", "message": "full", "detail": {"path": "x"}}
        script.play(answer(200, lines(HEAD, ITEM, {"error": error})))
        with pytest.raises(StoreError, match="full"):
            list(client.parse_iter(texts=["", "It"]))
        assert len(script.requests) == 5
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


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("event: a\ndata: 1\n\nevent: b\ndata: 2\n\n", [("a", "1"), ("b", "2")]),
        ("data:  a\ndata:b\n\n", [("message", " a\nb")]),
        (": keep-alive\n\nid: 7\nretry: 100\n\nevent: x\n\n", []),
        ("event: a\ndata: 1\n\ndata: 2\n\n", [("a", "1"), ("message", "2")]),
        ("event: end\ndata: {}", []),  # it is not finished
    ],
)
def test_events_end_at_blank_lines(text, events):
    decoder = EventDecoder()
    found = [decoder.feed(line) for line in text.split("\n")]
    assert [one for one in found if one is not None] == [Event(*event) for event in events]
