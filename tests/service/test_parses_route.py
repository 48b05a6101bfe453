"""``GET /parses/{key}`` and ``DELETE /parses/{key}``: what is stored of a text, and its end."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from featurestore import open_store
from featurestore.maintenance.delete import delete_parses
from featurestore.maintenance.vacuum import vacuum_store
from featurestore.maintenance.validate import validate_store
from service.routes.parses import DeletionAnswer
from tests.featurestore.test_delete import files_with

from .serving import upload

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENIZER = "parsebank-wordpiece-en"
QUICK: dict[str, Any] = {"workers": 1, "job_workers": 0, "request_deadline_seconds": 300}


async def parsed(client: httpx.AsyncClient, text: str, **options: Any) -> dict[str, Any]:
    response = await client.post("/parse", json={"text": text, **options})
    assert response.status_code == 200, response.text
    item: dict[str, Any] = response.json()["items"][0]
    return item


async def test_a_stored_parse_is_shown_as_parse_answers_it(client: httpx.AsyncClient) -> None:
    text = "Shown by its key. It isn't hidden."
    await parsed(client, text)
    for accept in ("application/json", "text/x-conllu", "application/vnd.apache.arrow.stream"):
        asked = {"accept": accept}
        again = await client.post("/parse", json={"text": text}, headers=asked)
        key = (await parsed(client, text))["key"]
        shown = await client.get(f"/parses/{key}", headers=asked)
        assert (shown.status_code, shown.content) == (200, again.content)
        assert shown.headers["content-type"] == again.headers["content-type"]
        held = {**asked, "if-none-match": shown.headers["etag"]}
        assert (await client.get(f"/parses/{key}", headers=held)).status_code == 304
    lines = (await client.get(f"/parses/{key}?format=ndjson")).text.splitlines()
    assert json.loads(lines[1])["key"] == key


async def test_unknown_keys_are_named(client: httpx.AsyncClient) -> None:
    for method in ("GET", "DELETE"):
        answer = await client.request(method, "/parses/" + "0" * 32)
        assert (answer.status_code, answer.json()["error_type"]) == (404, "unknown_key")
        assert (await client.request(method, "/parses/yes")).status_code == 422


async def test_a_deleted_text_is_in_no_answer(serve) -> None:
    text = "Please forget this sentence entirely."
    async with serve(**QUICK, commit_seconds=0.05) as client:
        for _ in range(3):  # from the store, from memory, from ready bytes
            item = await parsed(client, text, tokenizer=TOKENIZER)
        await parsed(client, "This one stays.", tokenizer=TOKENIZER)
        key = item["key"]
        planned = (await client.delete(f"/parses/{key}?dry_run=true")).json()
        assert (await parsed(client, text, tokenizer=TOKENIZER))["cached"]
        answer = (await client.delete(f"/parses/{key}")).json()
        DeletionAnswer.model_validate(answer, strict=True)
        assert {**planned, "dry_run": False} == answer
        assert (answer["keys"], answer["examples"]) == ([key], 1)
        assert [part["dataset"] for part in answer["datasets"]] == ["adhoc"]
        assert (await client.get(f"/parses/{key}")).status_code == 404
        assert (await client.get(f"/features/{key}")).status_code == 404
        assert (await client.delete(f"/parses/{key}")).status_code == 404
        uri = client.app.state.services.store.uri
        with open_store(uri) as store:
            vacuum_store(store, older_than_hours=0)
        assert not files_with(uri, text)
        # Sent again, it is a new text, and stored again.
        assert not (await parsed(client, text, tokenizer=TOKENIZER))["cached"]
        await asyncio.to_thread(client.app.state.services.adhoc.flush)
    with open_store(uri) as store:
        rows = store.sql("select texts[1] from examples order by seq").fetchall()
        assert rows == [("This one stays.",), (text,)]
        assert validate_store(store).problem_count == 0


async def test_what_another_process_deletes_is_forgotten(serve) -> None:
    text = "Deleted from the command line."
    async with serve(**QUICK, commit_seconds=0.05) as client:
        for _ in range(3):
            key = (await parsed(client, text))["key"]
        services = client.app.state.services
        await asyncio.to_thread(services.store.flush)
        with open_store(services.store.uri) as store:
            delete_parses(store, [key])
        async with asyncio.timeout(60):
            while (await parsed(client, text, store=False))["cached"]:
                await asyncio.sleep(0.05)
        assert (await client.get(f"/parses/{key}")).status_code == 404


async def test_what_another_process_parsed_is_shown_at_once(serve) -> None:
    async with serve(**QUICK, refresh_seconds=3600) as client:
        key = (await parsed(client, "Parsed here."))["key"]
        store = client.app.state.services.store
        (record,) = store.parses.get_many([key]).values()
        other = replace(record, key="1" * 32)
        assert (await client.get(f"/features/{key},{other.key}")).status_code == 404
        with open_store(store.uri) as elsewhere:
            elsewhere.parses.append([other])
        shown = [f"/features/{key},{other.key}", f"/parses/{other.key}"]
        answers = await asyncio.gather(*map(client.get, shown))
        assert [answer.status_code for answer in answers] == [200, 200]


@pytest.mark.slow
async def test_ready_answers_outlive_whatever_deletes_nothing(serve) -> None:
    async with serve(**QUICK, commit_seconds=0.05) as client:
        for _ in range(3):
            key = (await parsed(client, "Asked for again.", tokenizer=TOKENIZER))["key"]
        ready = client.app.state.services.responses
        assert len(ready) == 1
        planned = (await client.delete(f"/parses/{key}?dry_run=true")).json()
        assert (planned["keys"], planned["examples"]) == ([key], 1)
        assert (await client.delete("/parses/" + "0" * 32)).status_code == 404
        assert len(ready) == 1
        assert (await client.delete(f"/parses/{key}")).status_code == 200
        assert len(ready) == 0


async def test_a_parse_that_is_known_is_shown_without_a_look_into_the_log(serve) -> None:
    async with serve(**QUICK) as client:
        key = (await parsed(client, "Shown from memory."))["key"]
        store = client.app.state.services.store
        await asyncio.to_thread(store.flush)
        log = Path(store.uri) / "parses" / "_delta_log"
        away = log.rename(log.with_name("away"))
        try:
            assert (await client.get(f"/parses/{key}")).status_code == 200
        finally:
            away.rename(log)


async def test_a_pin_and_a_waiting_job_that_hold_the_text_are_named(serve) -> None:
    text = "Held by a pin and by a job."
    async with serve(**QUICK, commit_seconds=0.05) as client:
        key = (await parsed(client, text, tokenizer=TOKENIZER))["key"]
        services = client.app.state.services
        await asyncio.to_thread(services.adhoc.flush)
        services.store.dataset("adhoc").pin("paper")
        job = (await client.post("/datasets/waiting/backfill", content=upload(text))).json()
        answer = (await client.delete(f"/parses/{key}")).json()
        assert (answer["pins"], answer["jobs"]) == (["paper"], [job["id"]])
        await client.delete(f"/jobs/{job['id']}")
        key = (await parsed(client, text))["key"]
        assert (await client.delete(f"/parses/{key}")).json()["jobs"] == []


@pytest.mark.slow
async def test_requests_during_deletions_leave_a_whole_store(serve) -> None:
    """Texts are asked for and deleted at once: no row of adhoc is left without its parse."""
    texts = [f"Sentence {number} comes and goes." for number in range(6)]
    async with serve(**QUICK, commit_seconds=0.02) as client:
        keys = [(await parsed(client, text))["key"] for text in texts]

        async def ask(text: str) -> None:
            for _ in range(6):
                await parsed(client, text, tokenizer=TOKENIZER)
                await asyncio.sleep(0.02)

        async def delete(key: str) -> None:
            for _ in range(2):
                answer = await client.delete(f"/parses/{key}")
                assert answer.status_code in (200, 404), answer.text

        await asyncio.gather(*map(ask, texts), *map(delete, keys))
        uri = client.app.state.services.store.uri
    with open_store(uri) as store:
        used = {key for (key,) in store.sql("select unnest(parse_keys) from examples").fetchall()}
        assert store.parses.contains(sorted(used)).all()
        assert validate_store(store).problem_count == 0
