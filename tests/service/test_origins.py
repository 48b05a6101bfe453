"""Pages of other sites: they can neither write, nor read by giving their name our address."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI

from clients import Client
from service.security.keys import KeyFile
from syntax.examples import DatasetSpec, Example, Segment

from .serving import Served, served, upload

Serve = Callable[..., Any]

asyncio_module = pytest.mark.asyncio(loop_scope="module")

EVIL = "http://evil.example"
UPLOAD = upload("It rained.")
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
async def test_a_page_of_another_origin_may_not_write(client, method, path, kind, body) -> None:
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
async def test_a_page_of_another_origin_may_ask_for_what_it_cannot_read(client) -> None:
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


async def test_with_keys_any_name_will_do_unless_some_are_listed(serve, tmp_path) -> None:
    secret, _ = KeyFile(tmp_path / "keys.json").add("ada")
    headers = {"Host": "any.example", "X-API-Key": secret}
    for listed, status in (([], 200), (["parsebank.example"], 403)):
        fields = {"keys_file": tmp_path / "keys.json", "allowed_hosts": listed, "job_workers": 0}
        async with serve(**fields) as client:
            assert (await client.get("/info", headers=headers)).status_code == status


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service as anybody starts it, which goes by a name that is no loopback to browsers too."""
    folder, names = tmp_path_factory.mktemp("service"), '["parsebank.test"]'
    with served(folder, "--host", "127.0.0.1", allowed_hosts=names) as started:
        yield started


@pytest.fixture(scope="module")
def url(service: Served) -> str:
    return service.url


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


LOADS = {
    "img": "<img src={url}>",
    "script": "<script src={url}></script>",
    "style": "<link rel=stylesheet href={url}>",
    "prefetch": "<link rel=prefetch href={url}>",
    "preload": "<link rel=preload as=fetch crossorigin href={url}>",
    "iframe": "<iframe src={url}></iframe>",
    "object": "<object data={url}></object>",
    "embed": "<embed src={url}>",
    "video": "<video src={url} autoplay></video>",
    "fetch": "<script>fetch({url}, {{mode: 'no-cors'}})</script>",
    "form": "<iframe name=f></iframe><form target=f action={form}><input name=data value={text}>"
    "<input name=tokenizer></form><script>document.forms[0].submit()</script>",
}
"""Ways in which a page has its visitor's browser send a GET."""


@contextmanager
def site(page: str) -> Iterator[int]:
    """A web site of one page; gives its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def process_url(base: str, text: str) -> str:
    return f"{base}/api/process?tokenizer=&tagger=&parser=&data={quote(text)}"


def is_stored(url: str, text: str) -> bool:
    answer = httpx.post(f"{url}/parse", json={"text": text, "store": False}, timeout=60).json()
    return bool(answer["items"][0]["cached"])


def test_no_get_stores_its_text(url: str) -> None:
    """Neither that of a page whose browser does not say so, nor a typed or clicked link's."""
    for number, headers in enumerate(({}, {"Referer": EVIL}, {"Sec-Fetch-Site": "none"})):
        text = f"It rained {number} times."
        answer = httpx.get(process_url(url, text), headers=headers, timeout=60)
        assert answer.status_code == 200
        assert f"# text = {text}" in answer.json()["result"]
        assert not is_stored(url, text)
    assert httpx.post(f"{url}/api/process", data={"data": text, "tokenizer": ""}).is_success
    assert is_stored(url, text)


def test_a_get_takes_a_short_text_only(url: str) -> None:
    longest = "Birds sing. " * 166 + "Go home."
    assert len(longest) == 2_000
    assert httpx.get(process_url(url, longest), timeout=60).is_success
    refused = httpx.get(process_url(url, longest + "!"))
    assert refused.status_code == 413
    assert refused.headers["content-type"].startswith("text/plain")
    assert "2001 characters" in refused.text
    assert "POST" in refused.text
    more = {"data": longest + "!", "tokenizer": ""}
    assert httpx.post(f"{url}/api/process", data=more, timeout=60).is_success


@pytest.mark.slow
def test_a_page_of_another_site_stores_nothing_over_plain_http(browser, service) -> None:
    base = service.url.replace("127.0.0.1", "parsebank.test")
    texts = {way: f"The {way} was sent." for way in [*LOADS, "link"]}
    parts = [
        way.format(
            url=f'"{process_url(base, texts[name])}"',
            form=f'"{base}/api/process"',
            text=f'"{texts[name]}"',
        )
        for name, way in LOADS.items()
    ]
    link = f'<a href="{process_url(base, texts["link"])}">more</a>'
    page = f"<!doctype html><title>evil</title>{link}{''.join(parts)}"
    asked = service.log.read_text().count("route=/api/process")
    with site(page) as port:
        browser.open(f"http://evil.test:{port}/")
        browser.wait_for("document.readyState === 'complete'")
        browser.click("a")
        browser.wait_for_text("# text = The link was sent.")
    came = service.log.read_text().count("route=/api/process") - asked
    assert came >= len(texts) - 1, service.log.read_text()  # a prefetch may be left out
    for way, text in texts.items():
        assert not is_stored(service.url, text), way
