"""The app: built without side effects, stopped without remains, killed without loss."""

from __future__ import annotations

import json
import signal
import socket
import time
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from typer.testing import CliRunner

from clients.cli import build_app
from service.app import create_app

from .serving import Served, all_gone, served

asyncio_module = pytest.mark.asyncio(loop_scope="module")


def test_building_the_app_touches_nothing(tmp_path: Path) -> None:
    app = create_app(store=str(tmp_path / "store"))
    assert app.openapi()["info"]["title"] == "Parsebank"
    assert list(tmp_path.iterdir()) == []


@asyncio_module
async def test_probes_may_ask_by_head(client: httpx.AsyncClient) -> None:
    for path in ("/health/live", "/health/ready", "/info"):
        answer = await client.head(path)
        assert (answer.status_code, (await client.get(path)).status_code) == (200, 200)


@asyncio_module
async def test_no_answer_repeats_a_text_in_a_redirect(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/process/?data=It+rained.")
    assert answer.status_code == 404
    assert "location" not in answer.headers


@asyncio_module
async def test_info_announces_defaults_and_limits(client: httpx.AsyncClient) -> None:
    info = (await client.get("/info")).json()
    assert info["parser"] == "parsebank/english"
    assert info["tokenizer"] in info["tokenizers"]
    assert info["modes"] == ["raw", "sentence", "pretokenized", "retokenize", "tokens_mwt"]
    assert info["limits"]["max_words_per_sentence"] == 1000
    assert info["limits"]["rate_limit"] is None
    told = {"max_body_bytes", "request_deadline_seconds", "max_queued_words", "job_max_line_bytes"}
    assert told <= set(info["limits"])


@asyncio_module
async def test_unknown_routes_and_methods_have_the_error_body(client: httpx.AsyncClient) -> None:
    for response, name in (
        (await client.get("/nope"), "not_found"),
        (await client.get("/parse"), "method_not_allowed"),
        (await client.get("/jobs/nope"), "unknown_job"),
    ):
        assert response.json()["error_type"] == name
        assert set(response.json()) == {"error_type", "message", "detail"}


async def test_without_its_default_parser_the_service_is_not_ready(serve) -> None:
    async with serve(lang="tlh") as client:
        response = await client.get("/health/ready")
        assert response.status_code == 503
        assert "tlh" in response.json()["message"]
        assert (await client.get("/info")).json()["parser"] is None


@pytest.mark.slow
async def test_stopping_leaves_no_process_and_an_app_can_start_again(serve) -> None:
    others = psutil.Process().children(recursive=True)
    for cached in (False, True):
        async with serve() as client:
            (item,) = (await client.post("/parse", json={"text": "Again."})).json()["items"]
            assert item["cached"] is cached
        assert set(psutil.Process().children(recursive=True)) <= set(others)


def test_serve_refuses_a_public_address_in_words(tmp_path: Path) -> None:
    arguments = ["serve", "--host", "0.0.0.0", "--store", str(tmp_path)]
    result = CliRunner().invoke(build_app(), arguments)
    assert result.exit_code == 1
    assert "--allow-remote" in result.output


@pytest.mark.slow
def test_models_commands_list_and_verify(tmp_path: Path) -> None:
    (tmp_path / "german-broken.udpipe").write_bytes(b"garbage")
    listed = CliRunner().invoke(build_app(), ["models", "list"])
    rows = [line.split("\t") for line in listed.output.splitlines()]
    found = json.loads(CliRunner().invoke(build_app(), ["models", "list", "--json"]).stdout)
    assert "parsebank/english" in [row[0] for row in rows]
    assert [[one["name"], str(one["size"])] for one in found] == [
        [row[0], row[rows[0].index("size")]] for row in rows[1:]
    ]
    assert CliRunner().invoke(build_app(), ["models", "verify"]).exit_code == 0
    arguments = ["models", "verify", "--models-dir", str(tmp_path)]
    broken = CliRunner().invoke(build_app(), arguments)
    assert broken.exit_code == 1
    assert "FAILED  udpipe/german-broken" in broken.output


def test_a_wrong_setting_is_explained(tmp_path: Path) -> None:
    arguments = ["serve", "--store", str(tmp_path), "--workers", "0"]
    result = CliRunner().invoke(build_app(), arguments)
    assert result.exit_code == 1
    assert "workers" in result.output


def parsed(service: Served, text: str) -> dict[str, Any]:
    with service.client() as client:
        (item,) = client.post("/parse", json={"text": text}).json()["items"]
    return dict(item)


@pytest.mark.slow
def test_a_killed_service_leaves_no_process_and_loses_no_committed_parse(tmp_path: Path) -> None:
    with served(tmp_path, "--workers", "2") as service:
        assert not parsed(service, "Keep this.")["cached"]
        family = service.family()
        assert len(family) >= 3
        time.sleep(2.5)
        service.process.kill()
        assert all_gone(family)
    with served(tmp_path) as service:
        assert parsed(service, "Keep this.")["cached"]


@pytest.mark.slow
def test_a_service_killed_in_the_middle_of_a_parse_leaves_no_process(tmp_path: Path) -> None:
    with served(tmp_path, "--workers", "2") as service:
        parsed(service, "Warm.")
        body = json.dumps({"text": "word " * 1000, "mode": "sentence"})
        with socket.create_connection(("127.0.0.1", service.port)) as wire:
            head = f"POST /parse HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
            wire.sendall(f"{head}Content-Type: application/json\r\n\r\n{body}".encode())
            time.sleep(0.2)
            family = service.family()
            service.process.kill()
            assert all_gone(family)


@pytest.mark.slow
def test_an_interrupted_service_stops_cleanly(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        parsed(service, "Warm.")
        family = service.family()
        assert service.end(signal.SIGINT) == 0
        assert all_gone(family)
    assert "Traceback" not in service.log.read_text()


@asyncio_module
async def test_the_store_tells_treebank_and_licence_of_a_parser(app, client) -> None:
    answer = (await client.post("/parse", json={"text": "Whose tree is this?"})).json()
    described = app.state.services.store.resolve(answer["parser"]["fingerprint"])
    assert described["name"] == "parsebank/english"
    assert "English-EWT" in described["treebank"]
    assert described["licence"] == "CC BY-SA 4.0"
