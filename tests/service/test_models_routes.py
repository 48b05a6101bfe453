"""The routes that describe, load and unload models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from service.app import create_app
from service.parsers import find_parser, identify
from service.settings import Settings
from syntax.fingerprint import file_sha256

from .conftest import connected, running

ENGLISH = "udpipe/english-ewt"


@pytest.fixture
async def client(tmp_path: Path, bundled: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A service with a folder of its own: a copy, a damaged model, and one of another language."""
    folder = tmp_path / "models"
    german = folder / "udpipe/german-gsd-ud-2.5-1.udpipe"
    german.parent.mkdir(parents=True)
    german.symlink_to(bundled)
    (folder / "udpipe" / "damaged.udpipe").write_bytes(b"")
    (folder / "udpipe" / "wrong.udpipe").write_bytes(b"x")
    (folder / "udpipe" / "wrong.json").write_text(json.dumps({"sha256": "0" * 64}))
    settings = Settings(store=str(tmp_path / "store"), models_dir=folder, workers=2)
    async with running(create_app(settings)) as app, connected(app) as connection:
        yield connection


async def test_every_model_is_described(client: httpx.AsyncClient, bundled: Path) -> None:
    models = {model["name"]: model for model in (await client.get("/models")).json()}
    added = {"udpipe/damaged", "udpipe/german-gsd-ud-2.5-1", "udpipe/wrong"}
    assert set(models) == {*added, "parsebank/english", ENGLISH}
    english = models[ENGLISH]
    assert english == {
        "name": ENGLISH,
        "backend": "udpipe.v1",
        "langs": ["en"],
        "columns": ["form", "upos", "head", "deprel"],
        "default_for": [],
        "treebank": "UD_English-EWT",
        "version": "15d613d8",
        "licence": "CC BY-SA 4.0",
        "size_bytes": bundled.stat().st_size,
        "sha256": file_sha256(bundled),
        "fingerprint": identify(find_parser(Settings(store="unused"), ENGLISH)).fingerprint,
        "loaded": False,
        "workers": 0,
        "memory_mb": None,
        "problem": None,
    }
    assert "is recorded" in models["udpipe/wrong"]["problem"]
    assert models["udpipe/wrong"]["fingerprint"] is None
    assert "not a UDPipe 1 model" in models["udpipe/damaged"]["problem"]


@pytest.mark.slow
async def test_a_model_is_loaded_and_unloaded_by_hand(client: httpx.AsyncClient) -> None:
    loaded = (await client.post(f"/models/{ENGLISH}/load")).json()
    assert (loaded["loaded"], loaded["workers"]) == (True, 2)
    assert loaded["memory_mb"] > 10
    assert (await client.get("/models/english-ewt")).json()["loaded"]
    unloaded = await client.post("/models/english-ewt/unload")
    assert (unloaded.status_code, unloaded.json()["loaded"]) == (200, False)
    assert (await client.post(f"/models/{ENGLISH}/unload")).status_code == 200
    # It comes back by itself.
    body = {"text": "It works.", "parser": ENGLISH}
    assert (await client.post("/parse", json=body)).status_code == 200
    assert (await client.get(f"/models/{ENGLISH}")).json()["loaded"]


async def test_a_model_that_cannot_be_loaded_or_found_is_a_named_error(
    client: httpx.AsyncClient,
) -> None:
    damaged = await client.post("/models/udpipe/damaged/load")
    assert (damaged.status_code, damaged.json()["error_type"]) == (503, "model_load")
    for answer in (
        await client.get("/models/udpipe/nothing"),
        await client.post("/models/udpipe/nothing/load"),
        await client.post("/models/nothing/unload"),
    ):
        assert (answer.status_code, answer.json()["error_type"]) == (404, "unknown_model")
        assert ENGLISH in answer.json()["detail"]["known"]


async def test_a_busy_model_is_not_unloaded(client: httpx.AsyncClient) -> None:
    text = " ".join(["Time flies like an arrow, and fruit flies like a banana."] * 150)
    parsing = asyncio.create_task(client.post("/parse", json={"text": text, "parser": ENGLISH}))
    conflict = None
    while not parsing.done() and conflict is None:
        answer = await client.post(f"/models/{ENGLISH}/unload")
        conflict = answer if answer.status_code == 409 else None
        await asyncio.sleep(0.01)
    assert conflict is not None
    assert conflict.json()["error_type"] == "conflict"
    assert (await parsing).status_code == 200
