"""What the LINDAT routes refuse, and how."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.lindat.documents import read_sentences
from service.lindat.models import lindat_models
from service.lindat.request import INPUTS, OUTPUTS
from service.lindat.sentences import write
from service.parsers import Limits
from service.settings import Settings
from syntax.errors import SpecError

from .lindat_reference import CHARACTERS, FULL, ask

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_options_without_effect_are_named(client: httpx.AsyncClient) -> None:
    fields = {"tokenizer": "ranges;bogus=1", "tagger": "default", "parser": "beam_search=5"}
    answer = (await client.post("/api/process", data={"data": "Go.", **fields})).json()
    assert answer["ignored"] == ["tokenizer: bogus", "parser: beam_search"]
    assert "ignored" not in (await ask(client, data="Go.", **FULL)).json()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tokenizer": ""}, "'data' is required"),
        ({"data": "a", "model": "klingon", **FULL}, "'klingon'"),
        ({"data": "a", "input": "pdf"}, "Unknown input format 'pdf'"),
        ({"data": "a", "output": "pdf", **FULL}, "Unknown output format 'pdf'"),
        ({"data": "no columns"}, "does not contain 10 columns"),
        ({"data": "1\ta\t_\t_\t_\t_\t9\t_\t_\t_\n"}, "too large head"),
        ({"data": "a\0b", **FULL}, "NUL"),
        *(({"data": data}, "carriage return") for data in ("\r", "\ra", "1\ta\r\n\n\r2\n")),
        ({"data": "a", "tokenizer": "joint_with_parsing"}, "joint_with_parsing"),
        ({"data": "\u00a0 \u00a0", "input": "horizontal", "tagger": ""}, "token 0"),
        ({"data": "a " * 1001, "input": "horizontal"}, "1001 words"),
        ({"data": "a\n" * 1001, "input": "vertical"}, "1001 words"),
        ({"data": "a\n" * 10_000, "input": "vertical"}, "2500 words"),
        ({"data": "a " * 150_000, "input": "generic_tokenizer"}, "300000 characters"),
        ({"data": "a " * 1001, "tokenizer": "presegmented", "tagger": ""}, "1001 words"),
    ],
)
async def test_a_wrong_request_is_a_400_in_plain_words(
    client: httpx.AsyncClient, fields: dict[str, str], message: str
) -> None:
    response = await client.post("/api/process", data=fields)
    assert response.status_code == 400
    assert response.headers["content-type"].startswith("text/plain")
    assert message in response.text


@pytest.mark.parametrize(
    ("query", "content_type", "body"),
    [
        ("data=%ff", "", b""),
        ("", "application/x-www-form-urlencoded", b"data=%ff"),
        ("", "application/x-www-form-urlencoded", b"data=\xff"),
        ("", "application/json", b'{"data": "a"}'),
        ("", "application/x-www-form-urlencoded", b"&" * 1_000),
        ("", "", b"data=a"),
        ("", "multipart/form-data", b"no boundary"),
        ("", "multipart/form-data; boundary=x", b"no part"),
        ("", "multipart/form-data; boundary=x", b"--x\r\n\r\nno name\r\n--x--\r\n"),
        (
            *("", "multipart/form-data; boundary=x"),
            b'--x\r\nContent-Disposition: form-data; name="data"\r\n\r\n\xff\r\n--x--\r\n',
        ),
    ],
)
async def test_lindat_unreadable_data_is_400(
    client: httpx.AsyncClient, query: str, content_type: str, body: bytes
) -> None:
    url = f"/api/process?{query}"
    response = await client.post(url, content=body, headers={"Content-Type": content_type})
    assert response.status_code == 400
    assert response.headers["content-type"].startswith("text/plain")


@pytest.mark.slow
async def test_a_full_queue_is_429_and_a_large_body_413(serve: Callable[..., Any]) -> None:
    busy = {"data": "word " * 900, "tokenizer": "presegmented", "parser": ""}
    async with serve(
        max_queued_words=1_000, workers=1, max_body_bytes=20_000, job_workers=0
    ) as client:
        texts = [f"{number} {busy['data']}" for number in range(5)]
        asking = [client.post("/api/process", data=busy | {"data": text}) for text in texts]
        answers = await asyncio.gather(*asking)
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
        assert all(answer.headers["content-type"].startswith("text/plain") for answer in refused)
        assert {answer.status_code for answer in answers} == {200, 429}
        large = await client.post("/api/process", data={"data": "a" * 30_000, **FULL})
        assert large.status_code == 413
        assert (await client.get("/api/process", params={"data": "Go.", **FULL})).status_code == 200


async def test_a_service_without_its_default_model_lists_the_others() -> None:
    models = lindat_models(Settings(store="unused", lang="tlh"))
    assert list(models) == ["models"]
    assert list(models["models"]) == ["english", "english-ewt"]


COLUMNS = st.sampled_from(
    ["1", "2", "1-2", "1.1", "0", "-1", "a", "_", "", " ", "SpaceAfter=No", "#"]
)
LINES = st.lists(COLUMNS, min_size=9, max_size=11).map("\t".join) | st.text(CHARACTERS, max_size=9)


@given(st.lists(LINES, max_size=6).map("\n".join), st.sampled_from(INPUTS))
@settings(max_examples=200)
async def test_any_data_is_read_or_refused(data: str, form: str) -> None:
    try:
        sentences = read_sentences(data, form, Limits())
    except SpecError:
        sentences = []
    for output in OUTPUTS:
        assert isinstance(write(sentences, output), str)
