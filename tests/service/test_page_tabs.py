"""What the tabs of the page ask for: examples of a dataset, SQL, columns of models, roles."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI

from featurestore import open_store
from featurestore.sql.answer import ANSWER_BYTES, answer_query
from service.pipeline.adhoc import NAME as ADHOC
from service.security.keys import KeyFile
from service.security.rules import ROLES
from service.sql import QUERY_BYTES, SqlProcesses, SqlQuery
from syntax.errors import DeadlineError, OverloadedError, SpecError

Serve = Callable[..., Any]

asyncio_module = pytest.mark.asyncio(loop_scope="module")

TOKENIZER = "parsebank-wordpiece-en"
TEXTS = ["Birds sing in the trees.", "It rained. Nobody came.", "The key turned."]
EXAMPLES = f"/datasets/{ADHOC}/examples"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def parsed(client: httpx.AsyncClient, app: FastAPI) -> httpx.AsyncClient:
    """A client of a service that has parsed and stored the texts."""
    answer = await client.post("/parse", json={"texts": TEXTS, "tokenizer": TOKENIZER})
    assert answer.status_code == 200
    await asyncio.to_thread(app.state.services.adhoc.flush)
    await asyncio.to_thread(app.state.services.store.flush)
    return client


@asyncio_module
async def test_examples_come_in_order_with_the_keys_of_their_parses(
    parsed: httpx.AsyncClient,
) -> None:
    answer = (await parsed.get(EXAMPLES)).json()
    assert (answer["total"], answer["tokenizer"]) == (3, TOKENIZER)
    assert [example["texts"] for example in answer["examples"]] == [[text] for text in TEXTS]
    assert {example["parser"] for example in answer["examples"]} == {"parsebank/english"}
    page = (await parsed.get(EXAMPLES, params={"start": 1, "limit": 1, "lang": "en"})).json()
    assert page["examples"] == answer["examples"][1:2]
    beyond = (await parsed.get(EXAMPLES, params={"start": 10**9})).json()
    assert (beyond["total"], beyond["examples"]) == (3, [])
    example = page["examples"][0]
    stored = (await parsed.get(f"/parses/{example['parse_keys'][0]}")).json()
    assert stored["items"][0]["text"] == TEXTS[1]
    path = f"/features/{','.join(example['parse_keys'])}"
    features = (await parsed.get(path, params={"tokenizer": TOKENIZER})).json()
    count = len(features["examples"][0]["input_ids"])
    assert count == sum(example["pieces"]) + 2


@asyncio_module
@pytest.mark.parametrize(
    ("path", "status", "error_type"),
    [
        ("/datasets/none/examples", 404, "unknown_dataset"),
        (f"{EXAMPLES}?split=dev", 404, "unknown_dataset"),
        (f"{EXAMPLES}?limit=101", 422, "spec"),
        (f"{EXAMPLES}?start=-1", 422, "spec"),
        (f"{EXAMPLES}?parser=stanza/en", 422, "unknown_parser"),
    ],
)
async def test_what_there_is_not_is_named(
    parsed: httpx.AsyncClient, path: str, status: int, error_type: str
) -> None:
    answer = await parsed.get(path)
    assert (answer.status_code, answer.json()["error_type"]) == (status, error_type)


@asyncio_module
async def test_sql_over_http(parsed: httpx.AsyncClient) -> None:
    query = "select form, head from words where sentence = 1 order by id"
    answer = (await parsed.post("/sql", json={"query": query, "limit": 2})).json()
    assert [column["name"] for column in answer["columns"]] == ["form", "head"]
    assert answer["rows"] == [["Nobody", 2], ["came", 0]]
    assert answer["truncated"]
    now = (await parsed.post("/sql", json={"query": "select now() as n"})).json()
    assert now["columns"] == [{"name": "n", "type": "TIMESTAMP WITH TIME ZONE"}]
    assert now["rows"][0][0].startswith("20")


@asyncio_module
@pytest.mark.parametrize("body", [{}, {"query": ""}, {"query": "x", "limit": 1001}])
async def test_sql_without_a_query_is_refused(client: httpx.AsyncClient, body: Any) -> None:
    answer = await client.post("/sql", json=body)
    assert (answer.status_code, answer.json()["error_type"]) == (422, "spec")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("copy (select 1) to 'x.csv'", "read-only"),
        ("select 1; select 2", "read-only"),
        ("set memory_limit = '9GB'", "read-only"),
        ("from read_csv('/etc/hostname')", "disabled by configuration"),
        ("select nothing from words", "nothing"),
        ("select list(range) from range(1_000_000_000)", "Out of Memory"),
        (f"select repeat('x', {ANSWER_BYTES})", "one row takes"),
    ],
)
def test_sql_refuses_with_its_reason(tmp_path: Path, query: str, words: str) -> None:
    with pytest.raises(SpecError) as refused:
        answered(tmp_path, query, 10)
    assert words in str(refused.value)


def answered(folder: Path, query: str, limit: int) -> dict[str, Any]:
    """The answer of an empty store."""
    with open_store(folder / "store") as store:
        return answer_query(store, query, limit, QUERY_BYTES)


def test_sql_values_are_json(tmp_path: Path) -> None:
    query = """select 9007199254740993 as big, 1.5::decimal(3, 1) as exact, 'nan'::float as nan,
        '\\x01\\x02'::blob as bytes, [{'a': null}] as nested, date '2026-01-02' as day"""
    answer = answered(tmp_path, query, 1)
    row = ["9007199254740993", "1.5", "nan", "<2 bytes>", [{"a": None}], "2026-01-02"]
    assert json.loads(json.dumps(answer["rows"])) == [row]
    assert not answer["truncated"]


def test_sql_cuts_an_answer_that_is_too_long(tmp_path: Path) -> None:
    query = f"select repeat('x', {ANSWER_BYTES // 3}) from range(9)"
    answer = answered(tmp_path, query, 9)
    assert (len(answer["rows"]), answer["truncated"]) == (2, True)


async def test_a_query_is_stopped_at_its_deadline_and_runs_alone(tmp_path: Path) -> None:
    processes = SqlProcesses(str(tmp_path / "store"))
    endless = SqlQuery("select count(*) from range(1_000_000_000_000)", 1, seconds=0.3)
    first, second = await asyncio.gather(
        processes.run(endless), processes.run(endless), return_exceptions=True
    )
    assert isinstance(first, DeadlineError)
    assert isinstance(second, OverloadedError)


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "select list_sum(generate_series(1, 2_000_000_000))",
        "select piece_distance(generate_series(-1, 60_000)::int[])",
    ],
)
async def test_a_query_cannot_take_the_memory_of_the_machine(tmp_path: Path, query: str) -> None:
    processes = SqlProcesses(str(tmp_path / "store"))
    with pytest.raises(Exception, match=r"(?i)memory"):
        await processes.run(SqlQuery(query, 1, seconds=300))


async def test_roles_hold_for_sql_and_for_texts_of_others(serve: Serve, tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "keys.json")
    keys = {role: {"X-API-Key": file.add(role, role=role)[0]} for role in ROLES}
    async with serve(keys_file=file.path, job_workers=0) as client:
        for role, headers in keys.items():
            assert (await client.get("/info", headers=headers)).json()["role"] == role
            mine = await client.get("/datasets/none/examples", headers=headers)
            assert mine.status_code == 404
            allowed = 404 if role == "admin" else 403
            assert (await client.get(EXAMPLES, headers=headers)).status_code == allowed
            answer = await client.post("/sql", json={"query": "copy"}, headers=headers)
            assert answer.status_code == (422 if role == "admin" else 403)
            for path in (f"{EXAMPLES}/", "/datasets/%61dhoc/examples"):
                assert (await client.get(path, headers=headers)).status_code != 200


async def test_without_keys_everybody_may_do_everything(serve: Serve) -> None:
    async with serve(job_workers=0) as client:
        assert (await client.get("/info")).json()["role"] == "admin"
