"""``POST /parse``: the contract, in JSON and CoNLL-U."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from service.parsers import Parser
from service.pipeline.pipeline import SHORT_TEXTS
from syntax import parse_conllu

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENIZER = "parsebank-wordpiece-en"


async def ask(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await client.post("/parse", json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def test_one_text_still_answers_a_list(client: httpx.AsyncClient, english: Parser) -> None:
    answer = await ask(client, text="I can't.", parser="english-ewt")
    assert answer["parser"] == {
        "name": "udpipe/english-ewt", "fingerprint": english.identity.fingerprint,
    }  # fmt: skip
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


async def test_ids_start_again_in_each_sentence(client: httpx.AsyncClient) -> None:
    (item,) = (await ask(client, text="It's fine. I can't go. Yes."))["items"]
    assert len(item["sentences"]) == 3
    for sentence in item["sentences"]:
        ids = [word["id"] for word in sentence["words"]]
        assert ids == list(range(1, len(ids) + 1))
        assert [i for token in sentence["tokens"] for i in token["word_ids"]] == ids
        for token in sentence["tokens"]:
            assert item["text"][token["start_char"] : token["end_char"]] == token["form"]


async def test_tokens_are_words(client: httpx.AsyncClient) -> None:
    items = (await ask(client, tokens=[["New York", "is", "big"], ["Yes"]]))["items"]
    (sentence,) = items[0]["sentences"]
    assert [word["form"] for word in sentence["words"]] == ["New York", "is", "big"]
    assert items[0]["text"] == "New York is big"
    assert items[1]["sentences"][0]["words"][0]["head"] == 0


async def test_sentence_mode_gives_one_sentence(client: httpx.AsyncClient) -> None:
    text = "One line.\nAnother. Third?"
    (item,) = (await ask(client, text=text, mode="sentence"))["items"]
    assert len(item["sentences"]) == 1
    assert item["text"] == text


async def test_second_parse_comes_from_the_store(client: httpx.AsyncClient) -> None:
    first = (await ask(client, text="Said twice."))["items"][0]
    again = (await ask(client, text="Said twice."))["items"][0]
    assert (first["cached"], again["cached"]) == (False, True)
    assert again | {"cached": False} == first


async def test_pieces_count_words_through_the_text(client: httpx.AsyncClient) -> None:
    answer = await ask(client, text="It works. Really \u200b", tokenizer=TOKENIZER)
    assert answer["tokenizer"]["name"] == TOKENIZER
    (item,) = answer["items"]
    pieces = item["wordpieces"]
    assert set(pieces) == {"input_ids", "offset_mapping", "word_ids", "parents"}
    assert len({len(column) for column in pieces.values()}) == 1
    words = [word for sentence in item["sentences"] for word in sentence["words"]]
    for (start, end), word_id in zip(pieces["offset_mapping"], pieces["word_ids"], strict=True):
        if word_id is not None:
            assert words[word_id]["start_char"] <= start < end <= words[word_id]["end_char"]
    roots = sum(parent == -1 for parent in pieces["parents"])
    assert roots >= len(item["sentences"])


async def test_only_the_matrices_asked_for_are_answered(client: httpx.AsyncClient) -> None:
    answer = await ask(
        client, text="It works. Yes.", tokenizer=TOKENIZER, matrices=["depth", "ancestor"]
    )
    (item,) = answer["items"]
    size = len(item["wordpieces"]["input_ids"])
    assert set(item["matrices"]) == {"depth", "ancestor"}
    assert len(item["matrices"]["ancestor"]) == len(item["matrices"]["depth"]) == size
    assert item["matrices"]["ancestor"][0][0] is True


async def test_distance_between_sentences_is_the_dtypes_maximum(
    client: httpx.AsyncClient,
) -> None:
    (item,) = (await ask(client, text="It works. Yes.", matrices=["distance"]))["items"]
    assert item["matrices"]["distance"][0][-1] == 255
    assert item["matrices"]["distance"][0][0] == 0


@pytest.mark.parametrize(
    ("headers", "query"), [({"accept": "text/x-conllu"}, ""), ({}, "?format=conllu")]
)
async def test_conllu_is_valid_and_names_errors(
    client: httpx.AsyncClient, headers: dict[str, str], query: str
) -> None:
    body = {"texts": ["I can't. Yes.", "", "a\u2028b c", " "]}
    response = await client.post(f"/parse{query}", json=body, headers=headers)
    assert response.headers["content-type"] == "text/x-conllu; charset=utf-8"
    sentences = list(parse_conllu(response.text))
    assert [s.comment("newdoc id") for s in sentences] == ["1", None, "3"]
    comments = [line for line in response.text.splitlines() if line.startswith("# error = ")]
    assert [comment.split()[3] for comment in comments] == ["2", "4"]
    assert "empty_text:" in comments[0]


@pytest.mark.parametrize(
    ("body", "error_type"),
    [
        ({}, "spec"),
        ({"text": "a", "texts": ["b"]}, "spec"),
        ({"text": 3}, "spec"),
        ({"texts": "a"}, "spec"),
        ({"tokens": ["a", "b"]}, "spec"),
        ({"text": "a", "mode": "pretokenized"}, "spec"),
        ({"tokens": [["a"]], "mode": "raw"}, "spec"),
        ({"text": "a", "mode": "nope"}, "spec"),
        ({"text": "a", "matrices": ["nope"]}, "spec"),
        ({"text": "a", "policy": "nope"}, "unknown_name"),
        ({"text": "a", "lang": "tlh"}, "unknown_language"),
        ({"text": "a", "lang": ""}, "unknown_language"),
        ({"text": "a", "parser": "nope"}, "unknown_parser"),
        ({"text": "a", "parser": "english", "lang": "de"}, "unknown_language"),
        ({"text": "a", "tokenizer": "/nope"}, "unknown_tokenizer"),
        ({"text": "a", "typo": 1}, "spec"),
        ([], "spec"),
        ("text", "spec"),
        (None, "spec"),
    ],
)
async def test_a_request_that_makes_no_sense_is_a_named_4xx(
    client: httpx.AsyncClient, body: Any, error_type: str
) -> None:
    response = await client.post("/parse", json=body)
    assert response.status_code == 422
    answer = response.json()
    assert set(answer) == {"error_type", "message", "detail"}
    assert answer["error_type"] == error_type


async def test_no_texts_answer_no_items(client: httpx.AsyncClient) -> None:
    assert (await ask(client, texts=[]))["items"] == []


async def test_too_many_texts_are_refused(serve: Callable[..., Any]) -> None:
    async with serve(max_items=2) as client:
        response = await client.post("/parse", json={"texts": ["a", "b", "c"]})
        assert (response.status_code, response.json()["error_type"]) == (422, "spec")
        assert (await client.post("/parse", json={"texts": ["a", "b"]})).status_code == 200


async def test_a_small_request_is_answered_and_kept_as_a_large_one(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    texts = ["I can't go.", "It works. Really.", "", "a\0b", "I can't go."]
    body = {"tokenizer": TOKENIZER, "store": False}
    await ask(client, text="The model is loaded, and described in the store.")
    small = await ask(client, texts=texts, **body)
    large = await ask(client, texts=[*texts, *["Yes."] * SHORT_TEXTS], **body)
    assert small["items"] == large["items"][: len(texts)]
    (kept,) = (await ask(client, text="Kept from here."))["items"]
    store = app.state.services.store
    assert store.parses.get_many([kept["key"]])[kept["key"]].parse.text == "Kept from here."
    store.flush()
    assert store.parses.contains([kept["key"]]).all()
