"""Pages of other sites: they can neither write, nor read by giving their name our address."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from clients import Client
from service.security.keys import KeyFile
from syntax.examples import DatasetSpec, Example, Segment

from .serving import served

Serve = Callable[..., Any]

asyncio_module = pytest.mark.asyncio(loop_scope="module")

EVIL = "http://evil.example"
SPEC = {"split": "dev", "lang": "en", "fields": ["text"]}
UPLOAD = b"\n".join(
    json.dumps(line).encode()
    for line in (
        {"spec": SPEC},
        {"example": {"example_id": "1", "segments": [{"text": "It rained."}]}},
    )
)
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
NDJSON = "application/x-ndjson"

WRITING = [
    ("POST", "/parse", JSON, b'{"text": "It rained."}'),
    ("POST", "/features", JSON, b'{"examples": [{"segments": [{"text": "It rained."}]}]}'),
    ("POST", "/datasets/d/backfill", NDJSON, UPLOAD),
    ("POST", "/datasets/d/backfill?dry_run=true", NDJSON, UPLOAD),
    ("POST", "/api/process", FORM, b"data=It+rained.&tokenizer="),
    ("GET", "/api/process?data=It+rained.&tokenizer=", "", b""),
    ("POST", "/models/en/load", "", b""),
    ("POST", "/models/en/unload", "", b""),
    ("POST", "/jobs/none/retry", "", b""),
    ("DELETE", "/jobs/none", "", b""),
    ("PUT", "/no/such/route", "", b""),
]
FOREIGN = [
    {"Origin": EVIL},
    {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://parsebank:3000", "Sec-Fetch-Site": "same-site"},
    {"Origin": "http://parsebank:3000"},
    {"Origin": "null"},
]
OWN = [
    {},
    {"Origin": "http://parsebank"},
    {"Origin": "http://parsebank", "Sec-Fetch-Site": "same-origin"},
    {"Origin": "https://before.the.proxy", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
]


@asyncio_module
@pytest.mark.parametrize(("method", "path", "kind", "body"), WRITING)
async def test_a_page_of_another_origin_may_not_write(
    client: httpx.AsyncClient, method: str, path: str, kind: str, body: bytes
) -> None:
    given = {"Content-Type": kind} if kind else {}
    for headers in FOREIGN:
        refused = await client.request(method, path, content=body, headers=given | headers)
        assert refused.status_code == 403, headers
        assert refused.json()["error_type"] == "forbidden"
        assert "cors_origins" in refused.json()["message"]
    # A dry run starts a process that measures a sample: one such request is enough.
    for headers in OWN[:1] if "dry_run" in path else OWN:
        answer = await client.request(method, path, content=body, headers=given | headers)
        assert answer.status_code != 403, headers


@asyncio_module
async def test_writing_is_refused_below_another_app_too(app: FastAPI) -> None:
    transport = httpx.ASGITransport(app, root_path="/nlp")
    async with httpx.AsyncClient(transport=transport, base_url="http://parsebank/nlp") as below:
        path = "/api/process?data=It+rained.&tokenizer="
        assert (await below.get(path, headers=FOREIGN[0])).status_code == 403
        assert (await below.get(path)).status_code == 200
        plain = {"Content-Type": "text/plain"}
        assert (await below.post("/parse", content=b"{}", headers=plain)).status_code == 415


@asyncio_module
async def test_a_page_of_another_origin_may_ask_for_what_it_cannot_read(
    client: httpx.AsyncClient,
) -> None:
    for path in ("/info", "/models", "/jobs", "/health/live"):
        for headers in FOREIGN:
            answer = await client.get(path, headers=headers)
            assert answer.status_code == 200
            assert "access-control-allow-origin" not in answer.headers


async def test_a_named_origin_may_write(serve: Serve) -> None:
    allowed = {"Origin": "https://corpora.example", "Sec-Fetch-Site": "cross-site"}
    async with serve(cors_origins=["https://corpora.example"], job_workers=0) as client:
        body = {"text": "It rained."}
        assert (await client.post("/parse", json=body, headers=allowed)).status_code == 200
        assert (await client.post("/parse", json=body, headers=FOREIGN[0])).status_code == 403
    async with serve(cors_origins=["*"], job_workers=0) as client:
        assert (await client.post("/parse", json=body, headers=FOREIGN[1])).status_code == 200


NOT_OURS = ("evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example")
OURS = ("localhost", "LOCALHOST:8000", "localhost.", "127.0.0.1", "127.0.0.1:8000", "10.1.2.3:80")
OURS_BY_VERSION_6 = ("[::1]", "[::1]:8000", "[fe80::1]")


@asyncio_module
@pytest.mark.parametrize("path", ["/info", "/health/ready", "/openapi.json", "/api/models"])
async def test_only_names_of_the_service_are_answered(client: httpx.AsyncClient, path: str) -> None:
    for host in NOT_OURS:
        refused = await client.get(path, headers={"Host": host})
        assert refused.status_code == 403, host
        assert refused.json()["error_type"] == "forbidden"
        assert "allowed_hosts" in refused.json()["message"]
    for host in (*OURS, *OURS_BY_VERSION_6):
        assert (await client.get(path, headers={"Host": host})).status_code == 200, host


async def test_further_names_are_listed(serve: Serve) -> None:
    async with serve(allowed_hosts=["Parsebank.example", "*.lab.example"], job_workers=0) as client:
        for host, status in (
            ("parsebank.example:8443", 200),
            ("a.lab.example", 200),
            ("lab.example", 403),
            ("evil.example", 403),
            ("localhost", 200),
        ):
            assert (await client.get("/info", headers={"Host": host})).status_code == status, host


async def test_the_bound_name_is_one_of_them(serve: Serve) -> None:
    async with serve(host="box.lan", allow_remote=True, job_workers=0) as client:
        assert (await client.get("/info", headers={"Host": "box.lan:8000"})).status_code == 200
        assert (await client.get("/info", headers={"Host": "evil.example"})).status_code == 403


async def test_with_keys_any_name_will_do_unless_some_are_listed(
    serve: Serve, tmp_path: Path
) -> None:
    secret, _ = KeyFile(tmp_path / "keys.json").add("ada")
    headers = {"Host": "any.example", "X-API-Key": secret}
    for listed, status in (([], 200), (["parsebank.example"], 403)):
        fields = {"keys_file": tmp_path / "keys.json", "allowed_hosts": listed, "job_workers": 0}
        async with serve(**fields) as client:
            assert (await client.get("/info", headers=headers)).status_code == status


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service as anybody starts it."""
    with served(tmp_path_factory.mktemp("service"), "--host", "127.0.0.1") as service:
        yield service.url


def test_cross_origin_page_cannot_write_to_a_loopback_service(url: str) -> None:
    simple = {"Content-Type": "text/plain", "Origin": EVIL, "Host": "evil.example"}
    for without in ((), ("Origin",), ("Host",), ("Origin", "Host")):
        headers = {name: value for name, value in simple.items() if name not in without}
        refused = httpx.post(f"{url}/datasets/csrf/backfill", content=UPLOAD, headers=headers)
        assert refused.status_code == (415 if without == ("Origin", "Host") else 403)
    assert httpx.get(f"{url}/jobs").json() == []


@pytest.mark.parametrize("path", ["/parse", "/features", "/datasets/d/backfill"])
def test_a_body_of_another_type_is_refused_with_what_is_taken(url: str, path: str) -> None:
    taken = NDJSON if "backfill" in path else JSON
    for kind in ("text/plain", FORM, "multipart/form-data; boundary=x", "nonsense"):
        refused = httpx.post(url + path, content=b"{}", headers={"Content-Type": kind})
        assert refused.status_code == 415, kind
        answer = refused.json()
        assert answer["error_type"] == "unsupported_media_type"
        assert taken in answer["message"]
        assert answer["detail"]["accepted"][0] == taken
    for kind in (taken, f"{taken.upper()}; charset=utf-8"):
        answer = httpx.post(url + path, content=b"{}", headers={"Content-Type": kind})
        assert (answer.status_code, answer.json()["error_type"]) == (422, "spec")


def test_origin_check_admits_clients_without_origin(url: str, tmp_path: Path) -> None:
    spec = DatasetSpec(name="few", split="dev", lang="en", fields=("text",))
    examples = [Example("1", (Segment(text="It rained."),), {})]
    embedded = Client.embedded(str(tmp_path / "store"), workers=1, job_workers=0)
    for client in (Client(url), embedded):
        with client:
            assert len(client.parse("It rained.").items) == 1
            assert client.backfill(spec, examples).id
