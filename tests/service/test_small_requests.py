"""Small requests, answered on the event loop: as large ones are."""

from __future__ import annotations

import asyncio

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI

from service.pipeline.pipeline import SHORT_TEXTS

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENIZER = "parsebank-wordpiece-en"


@pytest_asyncio.fixture(loop_scope="module")
async def warm(client: httpx.AsyncClient, app: FastAPI) -> FastAPI:
    """The service, which has just looked at its models and at the store."""
    for number in range(2):
        await client.post("/parse", json={"text": f"Warm {number}."})
    app.state.services.store.flush()
    await client.post("/parse", json={"text": "Looked again after the commit."})
    return app


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
