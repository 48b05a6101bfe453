"""Input as it really comes: each text has its named error, the others are answered, never a 500."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from typing import Any

import httpx
import psutil
import pytest

from service.parsers import find_parser
from service.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOOD = "It works."
NO_SPACE = "abcdefghij" * 9_000

PARSERS = {"en": "udpipe/english-ewt"}

ITEMS: dict[str, tuple[str, str | None]] = {
    "empty": ("", "empty_text"),
    "white space": (" \t\r\n\u2003", "empty_text"),
    "NUL": ("ab\0cd ef", "invalid_character"),
    "lone surrogate": ("ab\ud83d cd", "invalid_character"),
    "one megabyte without a space": ("x" * 1_000_000, "text_too_long"),
    "ninety kilobytes without a space": (NO_SPACE, None),
    "a 5,000-word sentence": ("word " * 5_000, "sentence_too_long"),
    "emoji and marks": ("👩‍👩‍👧‍👦 e\u0301 \ufeff \u200f!", None),
    "only punctuation": ("!?…", None),
    "control characters": ("a\x01b \x1b[0m \x7f", None),
    "a very long number of sentences": ("Yes. " * 3_000, None),
}


async def post(client: httpx.AsyncClient, content: bytes, **headers: str) -> httpx.Response:
    return await client.post(
        "/parse", content=content, headers={"content-type": "application/json", **headers}
    )


async def test_every_bad_text_fails_alone(client: httpx.AsyncClient) -> None:
    texts = [text for bad, _ in ITEMS.values() for text in (GOOD, bad)]
    # json.dumps writes a lone surrogate as an escape, which is valid JSON.
    response = await post(client, json.dumps({"texts": texts}).encode())
    assert response.status_code == 200
    items = response.json()["items"]
    assert all(item["text"] == GOOD for item in items[::2])
    outcomes = {
        name: item.get("error", {}).get("error_type")
        for name, item in zip(ITEMS, items[1::2], strict=True)
    }
    assert outcomes == {name: error for name, (_, error) in ITEMS.items()}


async def test_bad_texts_survive_tokenizing_and_matrices(client: httpx.AsyncClient) -> None:
    texts = ["👩‍👩‍👧‍👦 e\u0301 \ufeff \u200f!", "\u200b", "a\x01b", "!?…", NO_SPACE]
    body = {
        "texts": texts,
        "tokenizer": "parsebank-wordpiece-en",
        "matrices": ["distance", "depth", "ancestor"],
    }
    response = await post(client, json.dumps(body).encode())
    assert response.status_code == 200
    assert all("wordpieces" in item for item in response.json()["items"])


@pytest.mark.parametrize(
    ("tokens", "error_type"),
    [
        ([], "empty_text"),
        ([""], "empty_token"),
        (["a", " "], "empty_token"),
        (["a", "\u00a0"], "empty_token"),
        (["a\0"], "invalid_character"),
        (["a", "\udc00"], "invalid_character"),
        (["word"] * 5_000, "sentence_too_long"),
        (["x" * 1_000_000], "text_too_long"),
    ],
)
async def test_every_bad_token_list_fails_alone(client, tokens, error_type) -> None:
    body = {"tokens": [["It", "works"], tokens, ["New York", "is", " odd ", "\u200b"]]}
    response = await post(client, json.dumps(body).encode())
    assert response.status_code == 200
    first, bad, last = response.json()["items"]
    assert first["text"] == "It works"
    assert bad["error"]["error_type"] == error_type
    words = [word["form"] for word in last["sentences"][0]["words"]]
    assert words == ["New York", "is", " odd ", "\u200b"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"text": "\xff"}',
        b"[" * 100_000,
        b'{"text": NaN}',
        b'{"lang": "\\ud800", "text": "a"}',
        b'{"tokenizer": "\\ud800", "text": "a"}',
        b'{"tokenizer": "a\\u0000b", "text": "a"}',
        b'{"policy": "\\ud800", "text": "a"}',
        b'{"\\ud800": 1, "text": "a"}',
        b'{"texts": [null, "a"]}',
    ],
)
async def test_a_malformed_body_is_a_named_4xx(client: httpx.AsyncClient, content: bytes) -> None:
    response = await post(client, content)
    assert 400 <= response.status_code < 500
    assert set(response.json()) == {"error_type", "message", "detail"}


@pytest.mark.slow
async def test_a_corrupt_model_is_503_and_other_parsers_answer(serve, tmp_path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    whole = find_parser(Settings(store="unused"), "udpipe/english-ewt").path.read_bytes()
    (folder / "german-broken.udpipe").write_bytes(whole[:100_000])
    (folder / "french-swapped.udpipe").write_bytes(whole)
    (folder / "french-swapped.json").write_text(json.dumps({"language": "fr", "sha256": "0" * 64}))
    async with serve(models_dir=folder) as client:
        for lang in ("de", "fr"):
            response = await client.post("/parse", json={"text": GOOD, "lang": lang})
            assert response.status_code == 503
            assert response.json()["error_type"] == "model_load"
        assert (await client.post("/parse", json={"text": GOOD})).status_code == 200
        problems = {m["name"]: m["problem"] for m in (await client.get("/models")).json()}
        assert problems["udpipe/french-swapped"]
        assert problems["udpipe/english-ewt"] is None


@pytest.mark.parametrize("seconds", ["1e999", "Infinity", "NaN", "0", "-1"])
async def test_a_deadline_is_a_finite_time(client: httpx.AsyncClient, seconds: str) -> None:
    segments = b'"examples": [{"segments": [{"text": "Go."}]}]'
    for path, asked in (("/parse", b'"text": "Go."'), ("/features", segments)):
        content = b'{%b, "deadline_seconds": %b}' % (asked, seconds.encode())
        headers = {"content-type": "application/json"}
        refused = await client.post(path, content=content, headers=headers)
        assert refused.status_code == 422
        assert "deadline_seconds" in refused.json()["message"]


# UDPipe's tokenizer looks for a URL from each token up to the next white space: 15 s for these.
SLOW = {"commas": "," * 50_000, "brackets": "[(a)]" * 10_000 + "(" * 50_000}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["commas", "brackets"])
async def test_a_text_that_keeps_a_worker_busy_does_so_once(serve, kind) -> None:
    text = SLOW[kind]
    async with serve(workers=1, job_workers=0, request_deadline_seconds=1.0) as client:
        while (await client.post("/parse", json={"text": GOOD})).status_code != 200:
            pass  # the model is being loaded

        async def ask() -> str:
            answer = await client.post("/parse", json={"texts": [GOOD, text], "mode": "sentence"})
            first, second = answer.json()["items"]
            assert first["text"] == GOOD
            return str(second["error"]["error_type"])

        async def killed() -> str:
            lines = (await client.get("/metrics")).text.splitlines()
            return next(x for x in lines if "worker_restarts" in x and 'reason="deadline"' in x)

        for _ in range(200):  # a worker that hardly gets the processor says nothing about the text
            if (named := await ask()) == "text_too_slow":
                break
        assert named == "text_too_slow"
        # The next text waits for a new worker, which is started once the last kill is counted.
        while (await client.post("/parse", json={"text": "Another one."})).status_code != 200:
            pass
        before = await killed()
        assert await ask() == "text_too_slow"
        # The verdict is about a text as it was sent, in its mode.
        other = await client.post("/parse", json={"text": text[:50], "mode": "sentence"})
        assert other.json()["items"][0].get("error", {}).get("error_type") != "text_too_slow"
        assert await killed() == before
        assert (
            'parsebank_texts_total{outcome="text_too_slow"} 2.0'
            in (await client.get("/metrics")).text
        )


def workers() -> set[psutil.Process]:
    found = psutil.Process().children(recursive=True)
    return {process for process in found if process.ppid() != os.getpid()}


async def test_a_worker_killed_in_the_middle_costs_no_text(serve: Callable[..., Any]) -> None:
    others = workers()
    async with serve(workers=1, job_workers=0) as client:
        await client.post("/parse", json={"text": GOOD})
        body = {"texts": [GOOD, "word " * 900], "mode": "sentence", "store": False}
        asking = asyncio.create_task(client.post("/parse", json=body))
        await asyncio.sleep(0.1)
        (worker,) = workers() - others
        worker.send_signal(signal.SIGKILL)
        response = await asking
        assert all("text" in item for item in response.json()["items"])
        metrics = (await client.get("/metrics")).text
        died = 'parsebank_worker_restarts_total{parser="parsebank/english",reason="died"} 1.0'
        assert died in metrics


@pytest.mark.slow
async def test_overload_is_429_with_retry_after(serve: Callable[..., Any]) -> None:
    async with serve(max_queued_words=1_000, workers=1) as client:
        busy = {"text": "word " * 1_000, "mode": "sentence", "store": False}
        asking = [asyncio.create_task(client.post("/parse", json=busy)) for _ in range(4)]
        responses = await asyncio.gather(*asking)
        codes = sorted(response.status_code for response in responses)
        assert codes[0] == 200
        assert codes[-1] == 429
        refused = next(response for response in responses if response.status_code == 429)
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json()["error_type"] == "overloaded"
