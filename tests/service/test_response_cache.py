"""Answers kept as ready bytes: never another answer than the long way would give."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.app import create_app
from service.parsers.registry import bundled_models_dir
from service.pipeline.resolvers import ParserResolver, TokenizerResolver
from service.pipeline.response_cache import CachedResponse, Origin, ResponseCache, response_key
from service.render.negotiate import FORMATS
from service.security.keys import KeyFile
from service.settings import Settings
from service.tokenizers import bundled_tokenizers
from tests.service.conftest import connected, running

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENIZER = "parsebank-wordpiece-en"
QUICK = {"workers": 1, "job_workers": 0}


def lookups(app: FastAPI) -> int:
    """Requests so far that went the long way."""
    (family,) = app.state.services.stages.histogram.collect()
    labels = {"stage": "lookup"}
    counts = (s for s in family.samples if s.name.endswith("_count") and s.labels == labels)
    return int(next(counts).value)


async def ask(client: httpx.AsyncClient, body: Any, query: str = "", **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await client.post(f"/parse{query}", json=body, headers=named)


@dataclass
class Ways:
    """Asks and tells whether an answer came from ready bytes."""

    app: FastAPI
    client: httpx.AsyncClient

    async def __call__(
        self, body: Any, query: str = "", **headers: str
    ) -> tuple[httpx.Response, bool]:
        before = lookups(self.app)
        response = await ask(self.client, body, query, **headers)
        return response, lookups(self.app) == before


@pytest_asyncio.fixture(loop_scope="module")
async def ways(app: FastAPI, client: httpx.AsyncClient) -> Ways:
    return Ways(app, client)


async def test_the_third_time_is_from_ready_bytes(ways: Ways) -> None:
    body = {"text": "Asked three times.", "tokenizer": TOKENIZER, "matrices": ["distance"]}
    (first, _), (second, _), (third, ready) = [await ways(body) for _ in range(3)]
    assert ready
    assert not first.json()["items"][0]["cached"]
    assert told(third) == told(second)


@pytest.mark.parametrize(
    "body",
    [
        {"texts": ["Good.", ""]},
        {"texts": ["Good.", "a\0b"]},
        {"text": "Never kept.", "store": False},
        {"text": "word " * 40, "matrices": ["distance"], "tokenizer": "/no/such"},
        {"text": "word ", "typo": 1},
        {"texts": "no list"},
    ],
)
async def test_what_failed_or_was_not_stored_is_not_kept(ways: Ways, body: Any) -> None:
    ready = ways.app.state.services.responses
    for _ in range(3):
        size = len(ready)
        await ways(body)
        assert len(ready) == size


async def test_each_shape_is_kept_by_itself(ways: Ways) -> None:
    body = {"text": "Many shapes. " * 20}
    seen: dict[tuple[str, str], bytes] = {}
    for _ in range(3):
        for shape in FORMATS:
            for encoding in ("identity", "gzip", "zstd"):
                response, ready = await ways(body, f"?format={shape}", accept_encoding=encoding)
                assert response.headers.get("content-encoding", "identity") == encoding
                assert response.headers["vary"] == "Accept, Accept-Encoding"
                seen.setdefault((shape, encoding), response.content)
    assert ready
    assert len(set(seen.values())) == len(FORMATS) + 1  # only the very first was not stored yet


async def test_other_bytes_or_another_type_go_the_long_way(ways: Ways) -> None:
    body = {"text": "Word for word."}
    for _ in range(3):
        _, ready = await ways(body)
    assert ready
    content, before = json.dumps(body), lookups(ways.app)
    of_json = {"content-type": "application/json"}
    spaced = await ways.client.post("/parse", content=content + " ", headers=of_json)
    assert spaced.status_code == 200
    assert lookups(ways.app) == before + 1
    for headers in ({"content-type": "text/plain"}, {**of_json, "content-encoding": "gzip"}):
        refused = await ways.client.post("/parse", content=content, headers=headers)
        assert refused.status_code in (415, 422)


async def test_body_in_pieces_is_not_answered_by_the_cache(ways: Ways) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"text": "In '
        yield b'pieces."}'

    headers = {"content-type": "application/json"}
    await ways({"text": "In pieces."})  # a text that is new is looked up twice
    for _ in range(3):
        before = lookups(ways.app)
        response = await ways.client.post("/parse", content=pieces(), headers=headers)
        assert response.json()["items"][0]["text"] == "In pieces."
        assert lookups(ways.app) == before + 1


async def test_a_key_is_asked_for_before_a_ready_answer(serve, tmp_path) -> None:
    file = KeyFile(tmp_path / "keys.json")
    secret, _ = file.add("someone")
    async with serve(keys_file=file.path, rate_limit="5/minute", **QUICK) as client:
        ways = Ways(client.app, client)
        for _ in range(3):
            _, ready = await ways({"text": "For some only."}, x_api_key=secret)
        assert ready
        for headers in ({}, {"x_api_key": "pb_wrong"}):
            refused, _ = await ways({"text": "For some only."}, **headers)
            assert (refused.status_code, refused.json()["error_type"]) == (401, "unauthorized")
        statuses = [
            (await ways({"text": "For some only."}, x_api_key=secret))[0].status_code
            for _ in range(4)
        ]
        assert statuses[-1] == 429


# What an answer depends on beside its request.


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


def add_model(folder: Path, name: str) -> Path:
    """The bundled English model under a name of its own."""
    return Path(shutil.copy(bundled_models_dir() / "english-ewt.udpipe", folder / name))


@pytest.mark.slow
async def test_a_new_default_parser_answers_at_once(serve, models_dir) -> None:
    async with serve(models_dir=models_dir, **QUICK) as client:
        ways = Ways(client.app, client)
        for _ in range(3):
            response, ready = await ways({"text": "Who parses this?"})
        assert ready
        assert response.json()["parser"]["name"] == "parsebank/english"
        add_model(models_dir, "english-own.udpipe")
        response, ready = await ways({"text": "Who parses this?"})
        assert not ready
        assert response.json()["parser"]["name"] == "udpipe/english-own"
        named, _ = await ways({"text": "Who parses this?", "parser": "english-ewt"})
        assert named.json()["parser"]["name"] == "udpipe/english-ewt"


@pytest.mark.slow
async def test_a_changed_model_file_is_noticed(serve: Callable[..., Any], models_dir: Path) -> None:
    path = add_model(models_dir, "english-own.udpipe")
    content = path.read_bytes()
    async with serve(models_dir=models_dir, **QUICK) as client:
        ways = Ways(client.app, client)
        for _ in range(3):
            response, ready = await ways({"text": "From a file."})
        assert ready
        path.write_bytes(b"not a model")
        broken, _ = await ways({"text": "From a file."})
        assert (broken.status_code, broken.json()["error_type"]) == (503, "model_load")
        path.unlink()
        bundled, _ = await ways({"text": "From a file."})
        assert bundled.json()["parser"]["name"] == "parsebank/english"
        path.write_bytes(content)
        again, _ = await ways({"text": "From a file."})
        assert again.json() == response.json()


async def test_a_tokenizer_that_was_replaced_is_noticed(serve, tmp_path) -> None:
    folder = tmp_path / "tokenizer"
    shutil.copytree(bundled_tokenizers()[TOKENIZER], folder)
    body = {"text": "Untokenizable.", "tokenizer": str(folder)}
    async with serve(tokenizers_dir=tmp_path, **QUICK) as client:
        ways = Ways(client.app, client)
        for _ in range(3):
            response, ready = await ways(body)
        assert ready
        settings_file = folder / "tokenizer.json"
        changed = json.loads(settings_file.read_text())
        changed["model"]["max_input_chars_per_word"] = 3
        settings_file.write_text(json.dumps(changed))
        other, ready = await ways(body)
        assert not ready
        assert other.json()["tokenizer"] != response.json()["tokenizer"]


# Against a service that keeps nothing.

BODIES = (
    {"text": "It works."},
    {"texts": ["It works.", "Time flies."]},
    {"texts": ["It works.", ""]},
    {"text": "It works.", "tokenizer": TOKENIZER},
    {"text": "It works.", "tokenizer": TOKENIZER, "policy": "chain"},
    {"text": "It works.", "matrices": ["depth"]},
    {"text": "It works.", "store": False},
    {"text": "It works.", "parser": "english"},
    {"text": "It works.", "parser": "nobody"},
    {"tokens": [["It", "works"]]},
    {"tokens": [["It", "works"]], "mode": "retokenize"},
    {"text": "Not stored.", "store": False},
    {"nonsense": 1},
)

requests = st.tuples(
    st.sampled_from(BODIES),
    st.sampled_from(["", "?format=json", "?format=conllu", "?format=arrow", "?x=1", "?format=x"]),
    st.sampled_from(["", "*/*", "text/x-conllu", "application/x-ndjson", "image/png"]),
    st.sampled_from(["identity", "gzip", "zstd"]),
    st.sampled_from(["", "*", '"x"']),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """A service that keeps answers, and one that does not."""
    stores = [str(tmp_path_factory.mktemp("store")) for _ in range(2)]
    apps = [
        create_app(Settings(store=store, response_cache_mb=room, **QUICK))
        for store, room in zip(stores, (1, 0), strict=True)
    ]
    async with (
        running(apps[0]) as keeping,
        running(apps[1]) as forgetting,
        connected(keeping) as first,
        connected(forgetting) as second,
    ):
        first.app, second.app = keeping, forgetting
        yield first, second


@pytest.mark.slow
@given(st.lists(requests, min_size=1, max_size=12))
@example([(BODIES[0], "?format=arrow", "", "identity", held) for held in ("", "", "", "*")])
@settings(max_examples=10)
async def test_it_answers_as_a_service_that_keeps_nothing(pair, asked) -> None:
    for body, query, accept, encoding, held in asked:
        headers = {"accept": accept, "accept_encoding": encoding, "if_none_match": held}
        one, other = [await ask(client, body, query, **headers) for client in pair]
        assert told(one) == told(other)


def told(response: httpx.Response) -> Any:
    kept = {name: value for name, value in response.headers.items() if name != "x-request-id"}
    return response.status_code, kept, response.content


# The memory that they may take.


def answer_of(size: int) -> CachedResponse:
    origin = Origin(None, None, None, ("f" * 32, "en"), None, generation=0, texts=1)
    return CachedResponse(b"x" * size, ((b"content-type", b"x"),), origin)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 200_000)), max_size=60))
@settings(max_examples=50)
async def test_memory_is_bounded_and_the_last_used_stay(app, puts) -> None:
    chosen = Settings(store="unused", response_cache_mb=1)
    store = app.state.services.store
    ready = ResponseCache(chosen, store, ParserResolver(chosen), TokenizerResolver(chosen))
    kept: dict[bytes, int] = {}
    for name, size in puts:
        key = response_key(str(name).encode(), b"json", b"identity")
        ready.put(key, answer_of(size))
        kept.pop(key, None)
        if answer_of(size).size * 8 <= 1 << 20:
            kept[key] = answer_of(size).size
        while sum(kept.values()) > 1 << 20:
            kept.pop(next(iter(kept)))
        assert ready.size == sum(kept.values()) <= 1 << 20
        assert len(ready) == len(kept)


async def test_keys_do_not_run_together() -> None:
    parts = [(a, b) for a in (b"", b"a", b"ab", b"\0a", b"1:a") for b in (b"", b"a", b"b")]
    assert len({response_key(*both) for both in parts}) == len(parts)


async def test_a_response_is_not_kept_if_a_parse_was_deleted_meanwhile(app: FastAPI) -> None:
    services = app.state.services
    response = answer_of(10)
    for behind, expected in ((1, 0), (0, 1)):
        ready = ResponseCache(
            services.settings,
            services.store,
            services.pipeline.parsers,
            services.pipeline.tokenizers,
        )
        generation = services.store.parses.generation - behind
        origin = replace(response.origin, generation=generation)
        ready.put(b"key", replace(response, origin=origin))
        assert len(ready) == expected
