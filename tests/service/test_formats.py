"""The formats of ``POST /parse``: how one is chosen, and that all of them say the same."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from service.render.negotiate import FORMATS, MEDIA_TYPES, negotiate
from service.routes.answers import is_current
from syntax import parse_conllu
from tests.service.asgi import Exchange
from tests.service.contract import ask, items

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG = "word " * 900


def lines(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


# How a format and an encoding are chosen.


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", "json"),
        ("*/*", "json"),
        ("application/*", "json"),
        ("text/*", "conllu"),
        ("text/x-conllu", "conllu"),
        ("TEXT/X-CoNLLU; charset=utf-8", "conllu"),
        ("text/x-conllu, */*", "conllu"),
        ("*/*, application/x-ndjson", "ndjson"),
        ("application/vnd.apache.arrow.stream", "arrow"),
        ("text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8", "json"),
        ("application/json;q=0.1, text/x-conllu;q=0.2", "conllu"),
        ("application/json;q=0, */*", "conllu"),
        ("application/json;q=nonsense, text/x-conllu;q=0.1", "conllu"),
        ("application/x-ndjson;q=0.5, application/json; q=0.50", "json"),
    ],
)
async def test_the_closest_and_best_liked_format_is_answered(accept: str, expected: str) -> None:
    assert negotiate(accept) == expected
    assert negotiate(accept, "arrow") == "arrow"


@pytest.mark.parametrize("accept", ["image/png", "application/json;q=0", "json", "*/*;q=0", "text"])
async def test_a_format_that_there_is_not_is_406(client: httpx.AsyncClient, accept: str) -> None:
    with pytest.raises(HTTPException):
        negotiate(accept)
    response = await client.post("/parse", json={"text": "Yes."}, headers={"accept": accept})
    assert response.status_code == 406
    assert response.json()["error_type"] == "not_acceptable"
    assert all(media_type in response.json()["message"] for media_type in MEDIA_TYPES.values())


async def test_a_header_that_comes_twice_is_one_list(client: httpx.AsyncClient) -> None:
    headers = [("accept", "image/png"), ("accept", "text/x-conllu")]
    response = await client.post("/parse", json={"text": "Yes."}, headers=headers)
    assert response.headers["content-type"] == "text/x-conllu; charset=utf-8"


@pytest.mark.parametrize("shape", FORMATS)
async def test_an_answer_has_the_type_of_its_format(client: httpx.AsyncClient, shape: str) -> None:
    response = await ask(client, shape, text="Yes.")
    assert response.headers["content-type"].partition(";")[0] == MEDIA_TYPES[shape]


@pytest.mark.parametrize("query", ["format=xml", "format=", "format=json&format=xml"])
async def test_a_format_by_an_unknown_name_is_refused(client, query) -> None:
    response = await client.post(f"/parse?{query}", json={"text": "Yes."})
    assert (response.status_code, response.json()["error_type"]) == (422, "spec")


@pytest.mark.slow
@given(st.text())
@settings(max_examples=200)
async def test_no_header_breaks_the_choice(header: str) -> None:
    with suppress(HTTPException):
        assert negotiate(header) in FORMATS


async def test_a_short_answer_is_not_compressed(client: httpx.AsyncClient) -> None:
    response = await ask(client, "conllu", text="Yes.")
    assert "content-encoding" not in response.headers
    assert response.headers["vary"] == "Accept"


async def test_openapi_names_every_format(client: httpx.AsyncClient) -> None:
    schema = (await client.get("/openapi.json")).json()["paths"]["/parse"]["post"]
    assert set(schema["responses"]["200"]["content"]) == set(MEDIA_TYPES.values())
    assert {parameter["name"] for parameter in schema["parameters"]} == {"format"}
    assert {"406", "413", "422", "429", "503", "504"} <= set(schema["responses"])
    assert (await client.get("/info")).json()["formats"] == list(FORMATS)


# Entity tags.


async def test_post_has_no_entity_tag_and_is_always_answered(client: httpx.AsyncClient) -> None:
    for _ in range(3):
        response = await client.post(
            "/parse", json={"text": "Yes."}, headers={"if-none-match": "*"}
        )
        assert response.status_code == 200
        assert "etag" not in response.headers
        assert response.headers["cache-control"] == "private, no-cache"


async def test_a_list_of_tags_is_read() -> None:
    assert is_current(' W/"b" , W/"a"', 'W/"a"')
    assert not is_current('W/"ab"', 'W/"a"')
    assert not is_current("a", 'W/"a"')


# NDJSON.


@pytest.mark.parametrize("texts", [[], [""]])
async def test_ndjson_without_a_parse_is_whole(client: httpx.AsyncClient, texts: list[str]) -> None:
    head, *_, end = lines((await ask(client, "ndjson", texts=texts)).content)
    assert set(head) == {"parser", "tokenizer"}
    assert end == {"done": {"items": len(texts), "failed": len(texts)}}


async def test_ndjson_items_are_sent_as_they_finish(app, client) -> None:
    await ask(client, text="Known before.")
    body = {"texts": [LONG, "Short.", "Known before."], "mode": "raw"}
    exchange = Exchange(app, "/parse?format=ndjson", body)
    await exchange.run()
    first = lines(exchange.bodies[0])
    assert [line.get("index") for line in first] == [None, 2]
    assert first[1]["cached"]
    order = [line["index"] for line in lines(b"".join(exchange.bodies)) if "index" in line]
    assert order == [2, 1, 0]
    assert len([body for body in exchange.bodies if body]) >= 3


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
async def test_a_compressed_stream_is_flushed_with_every_piece(app, client, encoding) -> None:
    await ask(client, text="Known before.")
    body = {"texts": [f"{LONG}{encoding}", "Known before."]}
    exchange = Exchange(app, "/parse?format=ndjson", body, {"accept-encoding": encoding})
    await exchange.run()
    assert exchange.headers["content-encoding"] == encoding
    zstd = zstandard.ZstdDecompressor().decompressobj
    unpack = (zstd() if encoding == "zstd" else zlib.decompressobj(31)).decompress
    early = unpack(exchange.bodies[0])
    assert [line.get("index") for line in lines(early)] == [None, 1]
    whole = early + b"".join(map(unpack, exchange.bodies[1:]))
    assert lines(whole)[-1] == {"done": {"items": 2, "failed": 0}}


async def test_disconnect_cancels_the_rest_of_an_ndjson_stream(serve: Callable[..., Any]) -> None:
    async with serve(workers=1, job_workers=0) as client:
        services = client.app.state.services
        await ask(client, text="Warm.")
        texts = ["First.", *(f"{LONG}{n}" for n in range(20))]
        exchange = Exchange(client.app, "/parse?format=ndjson", {"texts": texts}, leave_after=1)
        await exchange.run()
        assert lines(exchange.bodies[0])[1]["index"] == 0
        (pool,) = services.pools.running()
        assert pool.queue.texts == 0
        assert services.pipeline.counts["parsed"] < 10
        (first,) = await items(client, text="First.")
        assert first["cached"]


@pytest.mark.slow
async def test_a_failure_after_the_first_lines_is_the_last_line(serve: Callable[..., Any]) -> None:
    fields = {"workers": 1, "job_workers": 0}
    async with serve(**fields) as client:
        await ask(client, text="Known before.")
    # The model is loaded by the first text that needs it, which takes longer than this.
    body = {"texts": ["Known before.", "New."], "deadline_seconds": 0.1}
    async with serve(**fields) as client:
        exchange = Exchange(client.app, "/parse?format=ndjson", body)
        await exchange.run()
        assert exchange.status == 200
        _, item, end = lines(b"".join(exchange.bodies))
        assert (item["index"], item["cached"]) == (0, True)
        assert end["error"]["error_type"] == "deadline"
    async with serve(**fields) as client:
        response = await client.post("/parse?format=ndjson", json={**body, "texts": ["New."]})
        assert (response.status_code, response.json()["error_type"]) == (504, "deadline")


async def test_a_request_that_cannot_be_queued_has_a_status(serve: Callable[..., Any]) -> None:
    async with serve(max_queued_words=10, workers=1, job_workers=0) as client:
        await ask(client, text="Known before.")
        for texts in (["word " * 20], ["Known before.", "word " * 20]):
            response = await client.post("/parse?format=ndjson", json={"texts": texts})
            assert (response.status_code, response.json()["error_type"]) == (422, "spec")


# The deadline of one request.


@pytest.mark.slow
async def test_request_may_set_a_shorter_deadline(serve: Callable[..., Any]) -> None:
    async with serve(workers=1, job_workers=0) as client:
        await ask(client, text="Warm.")
        texts = [*(f"{LONG}{n}" for n in range(8)), "Late."]
        *_, last = await items(client, texts=texts, store=False, deadline_seconds=0.3)
        late = last["error"]
        assert late["error_type"] == "deadline"
        assert late["detail"]["seconds"] == pytest.approx(0.3, abs=0.05)


async def test_no_request_may_take_longer_than_the_setting(serve: Callable[..., Any]) -> None:
    async with serve(workers=1, job_workers=0, request_deadline_seconds=0.3) as client:
        for _ in range(50):
            response = await client.post("/parse", json={"text": "Warm."})
            if response.status_code == 200:
                break
        texts = [*(f"{LONG}{n}" for n in range(8)), "Late."]
        *_, last = await items(client, texts=texts, store=False, deadline_seconds=600)
        assert last["error"]["error_type"] == "deadline"


async def test_conllu_names_every_sentence_once(client: httpx.AsyncClient) -> None:
    two = "Birds sing. Dogs bark!"
    texts = [two, "", "I can't.  It's (over)\nagain.", two]
    answer = await client.post("/parse?format=conllu", json={"texts": texts})
    sentences = list(parse_conllu(answer.text))
    names = [sentence.sent_id for sentence in sentences]
    assert names[:2] == ["1-1", "1-2"]
    assert names[-2:] == ["4-1", "4-2"]
    assert len(set(names)) == len(names)
    assert all(sentence.comment("text") for sentence in sentences)


@pytest.mark.parametrize("format_", ["json", "ndjson"])
async def test_words_and_sentences_have_text_and_misc_of_conllu(client, format_) -> None:
    text = " I can't wait.  It's (over)!\nYes, don't. Au\u00a0revoir\u200b"
    conllu = (await client.post("/parse?format=conllu", json={"text": text})).text
    answer = (await ask(client, format_, text=text)).content
    item = lines(answer)[1] if format_ == "ndjson" else json.loads(answer)["items"][0]
    written = list(parse_conllu(conllu))
    assert [sentence["text"] for sentence in item["sentences"]] == [one.text for one in written]
    for sentence, one in zip(item["sentences"], written, strict=True):
        assert [word["misc"] for word in sentence["words"]] == [word.misc for word in one.words]
    assert "SpaceAfter=No" in {word["misc"] for word in item["sentences"][0]["words"]}
