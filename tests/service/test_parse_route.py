"""``POST /parse``: the contract, in JSON and CoNLL-U."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from service.parsers import Parser
from service.pipeline.pipeline import SHORT_TEXTS

from .contract import TOKENIZER, ask, items

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_one_text_still_answers_a_list(client: httpx.AsyncClient, english: Parser) -> None:
    answer = (await ask(client, text="I can't.", parser="english-ewt")).json()
    fingerprint = english.identity.fingerprint
    assert answer["parser"] == {"name": "udpipe/english-ewt", "fingerprint": fingerprint}
    assert answer["tokenizer"] is None
    (item,) = answer["items"]
    assert set(item) == {"key", "cached", "text", "sentences"}
    (sentence,) = item["sentences"]
    assert (sentence["start_char"], sentence["end_char"]) == (0, 8)
    assert sentence["tokens"][1] == {
        "form": "can't", "start_char": 2, "end_char": 7, "word_ids": [2, 3],
    }  # fmt: skip
    word = sentence["words"][2]
    assert set(word) == {
        "id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "start_char", "end_char",
        "misc",
    }  # fmt: skip
    assert (word["id"], word["form"], word["start_char"], word["end_char"]) == (3, "n't", 4, 7)
    assert [w["head"] for w in sentence["words"]].count(0) == 1


async def test_only_the_matrices_asked_for_are_answered(client: httpx.AsyncClient) -> None:
    body = {"tokenizer": TOKENIZER, "matrices": ["depth", "ancestor"]}
    (item,) = await items(client, text="It works. Yes.", **body)
    size = len(item["wordpieces"]["input_ids"])
    assert set(item["matrices"]) == {"depth", "ancestor"}
    assert len(item["matrices"]["ancestor"]) == len(item["matrices"]["depth"]) == size
    assert item["matrices"]["ancestor"][0][0] is True


@pytest.mark.parametrize(
    ("body", "error_type"),
    [
        ({}, "spec"),
        ({"text": "a", "texts": ["b"]}, "spec"),
        ({"tokens": ["a", "b"]}, "spec"),
        ({"text": "a", "mode": "pretokenized"}, "spec"),
        ({"tokens": [["a"]], "mode": "raw"}, "spec"),
        ({"text": "a", "matrices": ["nope"]}, "spec"),
        ({"text": "a", "policy": "nope"}, "unknown_name"),
        ({"text": "a", "lang": "tlh"}, "unknown_language"),
        ({"text": "a", "parser": "nope"}, "unknown_parser"),
        ({"text": "a", "parser": "english", "lang": "de"}, "unknown_language"),
        ({"text": "a", "tokenizer": "/nope"}, "unknown_tokenizer"),
        ({"text": "a", "typo": 1}, "spec"),
        ([], "spec"),
    ],
)
async def test_a_request_that_makes_no_sense_is_a_named_4xx(client, body, error_type) -> None:
    response = await client.post("/parse", json=body)
    assert response.status_code == 422
    answer = response.json()
    assert set(answer) == {"error_type", "message", "detail"}
    assert answer["error_type"] == error_type


async def test_no_texts_answer_no_items(client: httpx.AsyncClient) -> None:
    assert await items(client, texts=[]) == []


async def test_too_many_texts_are_refused(serve: Callable[..., Any]) -> None:
    async with serve(max_items=2) as client:
        response = await client.post("/parse", json={"texts": ["a", "b", "c"]})
        assert (response.status_code, response.json()["error_type"]) == (422, "spec")
        assert (await client.post("/parse", json={"texts": ["a", "b"]})).status_code == 200


async def test_a_small_request_is_answered_and_kept_as_a_large_one(app, client) -> None:
    texts = ["I can't go.", "It works. Really.", "", "a\0b", "I can't go."]
    body = {"tokenizer": TOKENIZER, "store": False}
    await ask(client, text="The model is loaded, and described in the store.")
    small = await items(client, texts=texts, **body)
    large = await items(client, texts=[*texts, *["Yes."] * SHORT_TEXTS], **body)
    assert small == large[: len(texts)]
    (kept,) = await items(client, text="Kept from here.")
    store = app.state.services.store
    assert store.parses.get_many([kept["key"]])[kept["key"]].parse.text == "Kept from here."
    store.flush()
    assert store.parses.contains([kept["key"]]).all()
