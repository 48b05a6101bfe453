"""Fixtures of the client tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import structlog
from typer.testing import CliRunner, Result

from clients import Client
from clients.cli import build_app


@pytest.fixture(scope="session")
def benchmark_files() -> Path:
    """Tiny benchmark files; the faulty ones are named after their fault."""
    return Path(__file__).parents[1] / "fixtures" / "benchmarks"


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs ``parsebank`` in this process."""
    for name, value in (("COLUMNS", "200"), ("PARSEBANK_JOB_WORKERS", "1")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PARSEBANK_URL", raising=False)

    def run(*arguments: object, **options: Any) -> Result:
        structlog.reset_defaults()  # each command is a process of its own, and says how it logs
        words = [*map(str, arguments)]
        return CliRunner().invoke(build_app(words), words, **options)

    return run


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for a store that the tests of a module share."""
    return tmp_path_factory.mktemp("commands") / "store"


@pytest.fixture(scope="module")
def client(store: Path) -> Iterator[Client]:
    """A client of a service in this process, over that store."""
    with Client.embedded(str(store), workers=1, job_workers=1) as client:
        yield client


@pytest.fixture
def parsebank(invoke: Callable[..., Result], store: Path) -> Callable[..., Result]:
    """Runs ``parsebank`` over that store."""
    return lambda *arguments, **options: invoke(*arguments, "--store", store, **options)


@dataclass
class Answer:
    """What the scripted server says next; status 0 hangs up instead."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class Script:
    """A server for what the real one does not do on demand: overload, hang up, break off.

    The last answer repeats.
    """

    url: str
    answers: list[Answer] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)

    def play(self, *answers: Answer) -> None:
        self.answers[:] = answers

    def next(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def script() -> Iterator[Script]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            script.requests.append((self.command, self.path))
            self._read_body()
            answer = script.next()
            if answer.status == 0:
                self.close_connection = True
                self.connection.close()
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.content())

        def _read_body(self) -> None:
            if self.headers.get("transfer-encoding") == "chunked":
                while size := int(self.rfile.readline() or b"0", 16):
                    self.rfile.read(size + 2)
                self.rfile.readline()
            else:
                self.rfile.read(int(self.headers.get("content-length", 0)))

        do_GET = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # a client that hung up is what some tests want
    script = Script(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield script
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def answer() -> type[Answer]:
    return Answer


@pytest.fixture
def job_json() -> dict[str, Any]:
    """A job as the service answers it."""
    return {
        "id": "j1",
        "dataset": "sample",
        "split": "dev",
        "lang": "en",
        "mode": "raw",
        "parser": "udpipe/english-ewt",
        "parser_fingerprint": "p",
        "tokenizer": "parsebank-wordpiece-en",
        "tokenizer_fingerprint": "t",
        "state": "running",
        "shards": {"total": 2, "done": 1, "failed": 0},
        "counts": {
            "examples": 100,
            "stored": 40,
            "already_stored": 8,
            "dropped": {"empty_text": 2},
            "parses": {"done": 70, "reused": 30},
        },
        "created": "2026-11-20T10:00:00Z",
        "started": "2026-11-20T10:00:01Z",
        "finished": None,
        "error": None,
    }
