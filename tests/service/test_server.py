"""The service as a process: what it binds, what it reads, how it stops."""

from __future__ import annotations

import json
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from typer.testing import CliRunner

from clients import AsyncClient, Client
from clients.cli import build_app
from clients.client.retries import Retries
from featurestore import open_store
from service.app import create_app
from service.security.keys import KeyFile
from service.server import Server, check_bind
from service.settings import Settings
from syntax.errors import RateLimitError, SpecError, UnauthorizedError

from .serving import Served, all_gone, served, upload


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for the tests that leave it alive: it asks for keys, and takes short bodies only."""
    folder = tmp_path_factory.mktemp("served")
    file = KeyFile(folder / "keys.json")
    secret, _ = file.add("ada")
    with served(folder, keys_file=str(file.path), max_body_bytes="20000") as running:
        running.key = secret
        yield running


# Where it binds


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org"])
def test_a_public_address_needs_keys_or_permission(host: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"--keys-file.*--allow-remote"):
        check_bind(Settings(host=host))
    check_bind(Settings(host=host, allow_remote=True))
    check_bind(Settings(host=host, keys_file=tmp_path / "keys.json"))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    check_bind(Settings(host=host))


def test_a_public_address_without_a_readable_keys_file_is_refused(tmp_path: Path) -> None:
    arguments = ["serve", "--host", "0.0.0.0", "--store", str(tmp_path / "store")]
    missing = ["--keys-file", str(tmp_path / "none.json")]
    result = CliRunner().invoke(build_app(), [*arguments, *missing])
    assert result.exit_code == 1
    assert "none.json" in result.output
    assert not (tmp_path / "store").exists()


def test_a_taken_port_is_named_before_anything_is_opened(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        arguments = ["serve", "--port", port, "--store", str(tmp_path / "store")]
        result = CliRunner().invoke(build_app(), arguments)
    assert result.exit_code == 1
    assert f"127.0.0.1:{port}" in result.output
    assert "another program" in result.output
    assert not (tmp_path / "store").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="uvloop is for POSIX")
async def test_uvloop_and_httptools_are_there_and_chosen(make_settings: Callable[..., Any]) -> None:
    chosen = make_settings()
    config = Server(create_app(chosen), chosen).config
    config.load()
    assert config.http_protocol_class.__name__ == "BoundedProtocol"
    loop = config.get_loop_factory()()
    try:
        assert type(loop).__module__ == "uvloop"
    finally:
        loop.close()


# What it reads


def exchange(service: Served, *parts: bytes) -> bytes:
    """Send raw bytes, and read until the service closes the connection."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=120) as wire:
        for part in parts:
            wire.sendall(part)
        return b"".join(iter(lambda: wire.recv(65536), b""))


def head(service: Served, *lines: str) -> bytes:
    fixed = ["POST /parse HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    return "\r\n".join([*fixed, f"X-API-Key: {service.key}", *lines, "", ""]).encode()


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


def test_a_chunked_body_is_read(service: Served) -> None:
    body = [chunk(b'{"text": '), chunk(b'"In pieces."}'), chunk(b"")]
    answer = exchange(
        service, head(service, "Transfer-Encoding: chunked", "Connection: close"), *body
    )
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"In pieces." in answer


def test_a_long_body_is_refused_before_it_is_sent(service: Served) -> None:
    # With `Expect: 100-continue` the caller waits for leave; the answer comes instead.
    asked = ("Content-Length: 20001", "Expect: 100-continue", "Connection: close")
    answer = exchange(service, head(service, *asked))
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"20000" in answer


def test_expect_continue_is_answered_within_the_limit(service: Served) -> None:
    body = b'{"text": "With leave."}'
    with socket.create_connection(("127.0.0.1", service.port), timeout=120) as wire:
        wire.sendall(head(service, f"Content-Length: {len(body)}", "Expect: 100-continue"))
        assert wire.recv(65536).startswith(b"HTTP/1.1 100")
        wire.sendall(body)
        assert wire.recv(65536).startswith(b"HTTP/1.1 200")


def flood(port: int, head: bytes, more: bytes) -> bytes:
    """The answer to a request that goes on and on, to 64 MB if it is let."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head)
        try:
            for _ in range((64 << 20) // len(more)):
                connection.sendall(more)
        except OSError:  # refused; what was answered before is still there
            pass
        try:
            return connection.recv(65_536)
        except OSError:
            return b""


CHUNKED = b"POST /parse HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
FLOODS = {
    "headers": (b"GET / HTTP/1.1\r\n", b"a: b\r\n" * 10_000),
    "header": (b"GET / HTTP/1.1\r\na: ", b"b" * 60_000),
    "name": (b"GET / HTTP/1.1\r\n", b"b" * 60_000),
    "url": (b"GET /", b"b" * 60_000),
    "trailers": (CHUNKED + b"0\r\n", b"a: b\r\n" * 10_000),
    "trailer": (CHUNKED + b"2\r\n{}\r\n0\r\na: ", b"b" * 60_000),
}


def settled_memory(process: psutil.Process) -> int:
    """Resident memory once it stands still: at first, the service loads its kernels."""
    size = 0
    while (found := process.memory_info().rss) != size:
        size = found
        time.sleep(1)
    return size


@pytest.mark.slow_cases
@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_of_headers_is_refused_before_it_is_kept(service: Served, kind: str) -> None:
    process = psutil.Process(service.process.pid)
    before = settled_memory(process)
    with ThreadPoolExecutor(4) as threads:
        floods = [threads.submit(flood, service.port, *FLOODS[kind]) for _ in range(4)]
        assert httpx.get(f"{service.url}/health/live", timeout=60).is_success
    answers = [one.result() for one in floods]
    if "trailer" not in kind:  # the request may have been answered: 401
        assert any(answer.startswith(b"HTTP/1.1 431 ") for answer in answers)
        assert any(b"more than 65536 bytes" in answer for answer in answers)
    assert process.memory_info().rss - before < 16 << 20
    assert httpx.get(f"{service.url}/health/live").is_success


def test_a_head_below_the_limit_is_read(service: Served) -> None:
    headers = {"X-API-Key": service.key, "X-Long": "a" * 50_000}
    assert httpx.get(f"{service.url}/info", headers=headers).status_code == 200
    with httpx.Client(base_url=service.url) as client:  # nor do requests of a connection add up
        for _ in range(3):
            assert client.get("/health/live", headers=headers).is_success


def test_a_trailer_is_no_header(service: Served) -> None:
    """Or a key could come after the checks of the headers."""
    body = b'{"text": "Go."}'
    sent = CHUNKED.replace(b"chunked", b"chunked\r\nContent-Type: application/json")
    sent += b"%x\r\n%b\r\n0\r\nX-API-Key: %b\r\n\r\n" % (len(body), body, service.key.encode())
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        connection.sendall(sent)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 401 ")


def test_a_broken_body_is_not_quoted_in_the_log(service: Served) -> None:
    headers = {"X-API-Key": service.key, "Content-Type": "multipart/form-data; boundary=x"}
    body = b"--x\r\nContent-Disposition: form-data; name=data\r\n\r\nmy secret\r\n--x--\r\nA SECRET"
    for broken in (body, body.replace(b"--x\r\n", b"SECRET SECRET", 1)):
        httpx.post(f"{service.url}/api/process", content=broken, headers=headers)
    assert "secret" not in service.log.read_text().lower()


def test_the_server_does_not_name_itself(service: Served) -> None:
    answer = httpx.get(f"{service.url}/health/live")
    assert "server" not in answer.headers
    assert answer.headers["x-request-id"]


# How it stops


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("it did not happen")


def in_progress(service: Served) -> int:
    """Requests in hand, without the one that asks."""
    text = httpx.get(f"{service.url}/metrics").text
    (count,) = re.findall(r"^parsebank_requests_in_progress (\d+)", text, re.M)
    return int(count) - 1


@pytest.mark.slow
def test_accepted_requests_are_answered_before_shutdown(tmp_path: Path) -> None:
    texts = ["word " * (300 + n) for n in range(4)]  # they keep a worker busy
    with served(tmp_path, job_workers="0") as service, ThreadPoolExecutor(2) as threads:
        url = f"{service.url}/parse"
        httpx.post(url, json={"text": "Warm."}, timeout=240)
        family = [psutil.Process(service.process.pid), *service.family()]
        job = _queued_job(service)
        with httpx.stream("GET", f"{service.url}/jobs/{job}/events", timeout=240) as events:
            told = events.iter_lines()
            assert any(line.startswith("event: progress") for line in told)
            body = {"text": "word " * 900, "mode": "sentence"}
            whole = threads.submit(httpx.post, url, json=body, timeout=240)
            body = {"texts": texts, "mode": "sentence"}
            stream = threads.submit(httpx.post, f"{url}?format=ndjson", json=body, timeout=240)
            wait_for(lambda: in_progress(service) == 3)
            service.process.send_signal(signal.SIGTERM)
            # A stream without an end of its own is ended, without the job's.
            assert not any(line.startswith("event: end") for line in told)
        assert whole.result().status_code == 200
        assert len(whole.result().json()["items"][0]["sentences"][0]["words"]) == 900
        lines = [json.loads(line) for line in stream.result().text.splitlines()]
        assert sum("sentences" in line for line in lines) == len(texts)
        assert service.process.wait(30) == 0
        assert all_gone(family)
        log = service.log.read_text()
    assert "stopped" in log
    assert "Traceback" not in log
    # What waited for its commit was committed.
    with open_store(str(tmp_path / "store")) as store:
        assert store.sql("select count(*) from parses").fetchall() == [(len(texts) + 2,)]


def _queued_job(service: Served) -> str:
    url = f"{service.url}/datasets/d/backfill"
    answer = httpx.post(url, content=upload("Wait."), timeout=240)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


@pytest.mark.slow
def test_second_signal_stops_the_service_at_once(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        httpx.post(f"{service.url}/parse", json={"text": "Warm."}, timeout=240)
        family = service.family()
        # A request whose body never comes keeps it from stopping by itself.
        with socket.create_connection(("127.0.0.1", service.port)) as wire:
            wire.sendall(head(service, "Content-Length: 10") + b"{")
            wait_for(lambda: in_progress(service) == 1)
            service.process.send_signal(signal.SIGTERM)
            wait_for(lambda: "stopping" in service.log.read_text())
            assert service.end(signal.SIGTERM) == 128 + signal.SIGTERM
        assert all_gone(family)


@pytest.mark.slow
def test_shutdown_timeout_ends_unfinished_requests(tmp_path: Path) -> None:
    with (
        served(tmp_path, shutdown_seconds="1") as service,
        socket.create_connection(("127.0.0.1", service.port)) as wire,
    ):
        wire.sendall(head(service, "Content-Length: 10") + b"{")
        wait_for(lambda: in_progress(service) == 1)
        assert service.end(signal.SIGTERM) == 0


# Clients with a key


async def test_clients_show_their_key(service: Served) -> None:
    with Client(service.url, api_key=service.key) as client:
        assert client.info()["name"] == "parsebank"
    async with AsyncClient(service.url, api_key=service.key) as other:
        assert (await other.info())["name"] == "parsebank"
    with Client(service.url) as client, pytest.raises(UnauthorizedError, match="Bearer"):
        client.info()
    assert service.key not in service.log.read_text()


async def test_clients_name_a_rate_limit(serve: Callable[..., Any]) -> None:
    async with serve(rate_limit="1/hour") as running:
        transport = httpx.ASGITransport(running.app)
        patience = Retries(attempts=1)
        async with AsyncClient("http://x", transport=transport, retries=patience) as client:
            await client.info()
            with pytest.raises(RateLimitError) as refused:
                await client.info()
    assert refused.value.detail["retry_after"] > 3000


@pytest.mark.slow
def test_the_command_line_shows_the_key(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["jobs", "list", "--url", service.url]
    monkeypatch.setenv("PARSEBANK_API_KEY", service.key)
    assert CliRunner().invoke(build_app(), arguments).exit_code == 0
    monkeypatch.delenv("PARSEBANK_API_KEY")
    refused = CliRunner().invoke(build_app(), arguments)
    assert refused.exit_code == 1
    assert "API key" in refused.output
    given = CliRunner().invoke(build_app(), ["--api-key", service.key, *arguments])
    assert given.exit_code == 0
