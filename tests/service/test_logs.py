"""Logs: a line per request with its id and numbers; never a text, never a key."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from starlette.requests import Request

from service.logs import configure_logging, configure_process_logging, describe, note, request_facts
from service.processes import python_environment
from service.security.keys import KeyFile
from syntax.errors import EmptyTextError, StoreBusyError

Serve = Callable[..., Any]

asyncio_module = pytest.mark.asyncio(loop_scope="module")
SECRET = "Zebrafinkenweibchen"
"""A text that nothing else can hold."""


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """These tests set up logging anew; the others shall not notice."""
    was_configured = structlog.is_configured()
    old, handlers, level = structlog.get_config(), logging.root.handlers[:], logging.root.level
    hook, variables = sys.excepthook, dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(variables)
    structlog.configure(**old)
    if not was_configured:  # else an embedded service takes structlog's own for the program's
        structlog.reset_defaults()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    logging.captureWarnings(False)
    sys.excepthook = hook


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[dict[str, Any]]]:
    """JSON logging; what has been logged since the last look."""
    configure_logging("debug", "json")
    return lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def requests(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == "request"]


# One line per request


async def test_request_logs_one_line(serve: Serve, lines: Any) -> None:
    async with serve() as client:
        body, plain = {"texts": ["One.", "Two."]}, {"Accept-Encoding": "identity"}
        answer = await client.post("/parse", json=body, headers=plain)
    (line,) = requests(lines())
    expected = {"level": "info", "method": "POST", "route": "/parse", "status": 200, "items": 2}
    facts = {"bytes": len(answer.content), "request_id": answer.headers["x-request-id"]}
    assert line.items() >= (expected | facts).items()
    assert line["ms"] > 0


async def test_routes_are_templates_and_health_checks_for_debugging(serve, lines) -> None:
    async with serve() as client:
        await client.get(f"/jobs/{SECRET}")
        await client.get(f"/{SECRET}?{SECRET}")
        await client.put("/parse")
        await client.get("/health/live")
    assert [(e["route"], e["status"], e["level"]) for e in requests(lines())] == [
        ("/jobs/{job_id}", 404, "info"),
        ("none", 404, "info"),
        ("/parse", 405, "info"),
        ("/health/live", 200, "debug"),
    ]


async def test_the_key_is_named_not_shown(serve: Serve, lines: Any, tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "keys.json")
    secret, _ = file.add("ada")
    async with serve(keys_file=file.path) as client:
        await client.get("/info", headers={"Authorization": f"Bearer {secret}"})
        await client.get("/info", headers={"X-API-Key": SECRET})
    events = lines()
    known, unknown = requests(events)
    assert known["key"] == "ada"
    assert "key" not in unknown
    assert secret not in str(events)
    assert SECRET not in str(events)


# Ids


async def test_an_id_comes_back_and_binds_what_is_logged_meanwhile(serve, lines) -> None:
    async with serve() as client:
        answer = await client.get("/info", headers={"X-Request-ID": "trace-7:a.b_c"})
    assert answer.headers["x-request-id"] == "trace-7:a.b_c"
    with request_facts("outer"):
        structlog.get_logger().info("inside")
        await asyncio.to_thread(structlog.get_logger().info, "in a thread")
    structlog.get_logger().info("outside")
    ids = {event["event"]: event.get("request_id") for event in lines()}
    assert ids["request"] == "trace-7:a.b_c"
    assert (ids["inside"], ids["in a thread"], ids["outside"]) == ("outer", "outer", None)


@pytest.mark.parametrize("sent", ["", "x" * 65, "a b", "a\tb", "é", "{}", 'a"b'])
@asyncio_module
async def test_an_id_that_could_forge_a_line_is_replaced(client, sent) -> None:
    headers = [(b"x-request-id", sent.encode())]
    given = (await client.get("/health/live", headers=headers)).headers["x-request-id"]
    assert re.fullmatch("[0-9a-f]{16}", given)


async def test_concurrent_requests_log_their_own_facts(serve: Serve, lines: Any) -> None:
    async with serve() as client:
        bodies = [{"texts": ["Same."] * n} for n in range(1, 9)]
        answers = await asyncio.gather(
            *(
                client.post("/parse", json=body, headers={"X-Request-ID": f"n{len(body['texts'])}"})
                for body in bodies
            )
        )
    assert all(answer.status_code == 200 for answer in answers)
    assert {e["request_id"]: e["items"] for e in requests(lines())} == {
        f"n{n}": n for n in range(1, 9)
    }


def test_note_outside_a_request_is_ignored() -> None:
    note(items=3)


# Never a text


async def test_bad_requests_do_not_leave_their_text(serve: Serve, lines: Any) -> None:
    bodies: list[Any] = [
        {"text": SECRET, "lang": 3},
        {"text": {"deep": SECRET}},
        {"texts": SECRET},
        {SECRET: 1},
        {"text": SECRET, "mode": SECRET},
        {"text": SECRET, "tokenizer": SECRET},
        {"text": SECRET + "\0"},
        {"tokens": [[SECRET, " "]]},
        [SECRET],
    ]
    async with serve() as client:
        for body in bodies:
            assert (await client.post("/parse", json=body)).status_code in (200, 422)
        broken = f'{{"text": "{SECRET}'
        headers = {"content-type": "application/json"}
        assert (await client.post("/parse", content=broken, headers=headers)).status_code == 422
        assert (await client.get(f"/info?x={SECRET}")).status_code == 200
    events = lines()
    assert len(requests(events)) == len(bodies) + 2
    assert SECRET not in str(events)


async def test_a_bug_is_answered_by_name_and_logged_without_the_text(serve, lines) -> None:
    async def broken(request: Request) -> None:
        text = (await request.body()).decode()
        try:
            raise KeyError(text)
        except KeyError as error:
            raise RuntimeError(f"cannot parse {text!r}") from error

    async with serve() as client:
        client.app.add_route("/broken/{name}", broken, methods=["POST"])
        answer = await client.post(f"/broken/{SECRET}", content=SECRET)
    assert answer.status_code == 500
    assert answer.json()["error_type"] == "internal"
    assert SECRET not in answer.text
    assert answer.headers["x-request-id"]
    events = lines()
    (failure,) = [event for event in events if event["event"] == "request failed"]
    assert failure["request_id"] == answer.headers["x-request-id"]
    assert failure["exception"].startswith("RuntimeError\n")
    assert "KeyError" in failure["exception"]
    assert "test_logs.py" in failure["exception"]
    assert SECRET not in str(events)


def test_messages_are_kept_where_they_hold_no_text() -> None:
    assert (
        describe(StoreBusyError("eight writers")) == "syntax.errors.StoreBusyError: eight writers"
    )
    assert describe(OSError(28, "No space left on device")) == "OSError: No space left on device"
    assert SECRET not in describe(EmptyTextError(SECRET))
    assert SECRET not in describe(UnicodeEncodeError("utf-8", SECRET, 0, 1, SECRET))


# The rest of the process


def test_libraries_log_in_our_form(capsys: pytest.CaptureFixture[str]) -> None:
    configure_process_logging("info", "json")
    try:
        raise ValueError(SECRET)
    except ValueError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")
    logging.getLogger("some.library").info("chatter")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old thing", DeprecationWarning, stacklevel=1)
    failed, warned = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert (failed["logger"], failed["level"]) == ("uvicorn.error", "error")
    assert failed["exception"].startswith("ValueError\n")
    assert "old thing" in warned["event"]


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A process of Python."""
    return subprocess.run(
        [sys.executable, *arguments],
        env={**python_environment(), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_crash_in_a_process_of_ours_shows_no_text() -> None:
    script = (
        "from service.logs import configure_process_logging\n"
        "configure_process_logging('info', 'json')\n"
        f"raise ValueError('{SECRET}'.upper())\n"
    )
    done = run("-c", script)
    assert done.returncode == 1
    assert json.loads(done.stderr)["event"] == "crashed"
    assert SECRET.upper() not in done.stderr


@pytest.mark.parametrize("form", ["console", "json"])
def test_no_line_shows_the_password_of_a_url(form: Any, capsys: pytest.CaptureFixture[str]) -> None:
    configure_process_logging("info", form)
    url = "http://ada:s3cret@store:9000/bucket"
    logging.getLogger("some.library").warning("cannot reach %s", url)
    structlog.get_logger().error(f"no {url}", url=url, exc_info=StoreBusyError(f"no {url}"))
    logged = capsys.readouterr().err
    assert "s3cret" not in logged
    assert logged.count("ada:***@store:9000/bucket") == 4


@pytest.mark.slow
def test_an_address_that_cannot_be_used_is_shown_without_its_password() -> None:
    given = {
        "AWS_ENDPOINT_URL": "http://ada:s3cret@127.0.0.1:1",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "y",
    }
    start = "from clients.cli import main; main()"
    done = run("-c", start, "serve", "--port", "0", "--store", "s3://bucket/x", **given)
    assert done.returncode == 1
    assert "s3cret" not in done.stdout + done.stderr
    assert "http://ada:***@127.0.0.1:1" in done.stderr


@pytest.mark.parametrize("end", ["", "os.abort()", "os._exit(3)"])
def test_what_libraries_write_by_themselves_is_json_too(end: str) -> None:
    script = f"""
import os, subprocess, sys, structlog
from service.logs import configure_process_logging
from service.relay import relay_standard_error
configure_process_logging("info", "json")
relay_standard_error()
os.write(2, b"\\nthread 'tokio' panicked at src/local.rs:1\\nnote: {{1\\n")
os.write(2, b"cannot reach http://ada:s3cret@store:9000\\n")
structlog.get_logger().info("ours")
child = "from service.logs import own_helper; own_helper(); import structlog, os;"
child += "os.write(2, b'of a helper\\\\n'); structlog.get_logger().info('its own')"
subprocess.run([sys.executable, "-c", child], check=True)
os.write(2, b"at the very end")
{end}
"""
    done = run("-c", script)
    events = [json.loads(line) for line in done.stderr.splitlines()]
    raw = [event["event"] for event in events if event.get("logger") == "stderr"]
    assert raw == [
        "thread 'tokio' panicked at src/local.rs:1",
        "note: {1",
        "cannot reach http://ada:***@store:9000",
        "of a helper",
        "at the very end",
    ]
    assert {"ours", "its own"} == {event["event"] for event in events} - {*raw}
    assert all(event["time"].endswith("Z") and event["level"] for event in events)


def test_console_lines_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", "console")
    structlog.get_logger().info("two\nlines", name="a b", path="x\ny", n=3)
    structlog.get_logger().debug("not now")
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"\S+Z info    'two\\nlines' name='a b' path='x\\ny' n=3", line)


def test_a_closed_log_does_not_stop_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    configure_logging("info")

    class Full:
        def write(self, _: str) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    structlog.get_logger().info("lost")
