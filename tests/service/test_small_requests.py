"""A small request is answered without leaving the event loop, and in no other way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI

from service.parsers import ParseInput
from service.pipeline.pipeline import SHORT_CHARACTERS, SHORT_TEXTS
from service.pipeline.records import FeatureAnswer, FeatureRequest, ItemFeatures

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENIZER = "parsebank-wordpiece-en"


async def rendered_in(app: FastAPI, *texts: str, **fields: Any) -> tuple[str, list[ItemFeatures]]:
    """The thread that rendered an answer, and its items."""
    items = tuple(ParseInput("raw", text=text) for text in texts)

    def render(answer: FeatureAnswer) -> tuple[str, list[ItemFeatures]]:
        assert all(isinstance(item, ItemFeatures) for item in answer.items)
        return threading.current_thread().name, list(answer.items)

    pipeline = app.state.services.pipeline
    _, rendered = await pipeline.answer(
        await pipeline.plan(FeatureRequest(items, **fields)), render
    )
    return rendered


@pytest_asyncio.fixture(loop_scope="module")
async def warm(app: FastAPI) -> FastAPI:
    """The service, which has just looked at its models and at the store."""
    for number in range(2):
        await rendered_in(app, f"Warm {number}.")
    app.state.services.store.flush()
    await rendered_in(app, "Looked again after the commit.")
    return app


async def test_what_is_small_stays_and_what_is_large_goes(serve: Callable[..., Any]) -> None:
    here = threading.current_thread().name
    # No commit and no new look come in between.
    async with serve(commit_seconds=600, refresh_seconds=600, workers=1, job_workers=0) as client:
        app = client.app
        assert (await rendered_in(app, "The very first text."))[0] != here
        assert (await rendered_in(app, "A new text."))[0] == here
        assert (await rendered_in(app, "A new text."))[0] == here
        assert (await rendered_in(app, "With pieces.", tokenizer=TOKENIZER))[0] == here
        texts = [f"Text {number}." for number in range(SHORT_TEXTS + 1)]
        assert (await rendered_in(app, *texts[:-1]))[0] == here
        assert (await rendered_in(app, *texts))[0] != here
        assert (await rendered_in(app, "x " * (SHORT_CHARACTERS // 2 + 1)))[0] != here
        assert (await rendered_in(app, "Matrices.", matrices=("depth",)))[0] != here


async def test_both_ways_give_the_same(client: httpx.AsyncClient, warm: FastAPI) -> None:
    texts = ["I can't go.", "It works. Really.", "", "a\0b", "I can't go."]
    body = {"tokenizer": TOKENIZER, "store": False}
    small = (await client.post("/parse", json={**body, "texts": texts})).json()
    padded = [*texts, *(["Yes."] * SHORT_TEXTS)]
    large = (await client.post("/parse", json={**body, "texts": padded})).json()
    assert small["items"] == large["items"][: len(texts)]


async def test_what_a_small_request_has_parsed_is_kept(
    client: httpx.AsyncClient, warm: FastAPI
) -> None:
    first = (await client.post("/parse", json={"text": "Kept from here."})).json()["items"][0]
    store = warm.state.services.store
    assert store.parses.get_many([first["key"]])[first["key"]].parse.text == "Kept from here."
    store.flush()
    assert store.parses.contains([first["key"]]).all()


async def test_small_requests_at_once_are_answered_each(
    client: httpx.AsyncClient, warm: FastAPI
) -> None:
    texts = [f"At once, number {number % 20}." for number in range(60)]
    answers = await asyncio.gather(*(client.post("/parse", json={"text": t}) for t in texts))
    assert [answer.json()["items"][0]["text"] for answer in answers] == texts
    keys = [answer.json()["items"][0]["key"] for answer in answers]
    assert len(set(keys)) == 20
