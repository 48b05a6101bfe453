"""What the clients do when the service is busy, gone, or breaks off; both in the same way."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from clients import AsyncClient, Client
from clients.client.failures import ServiceUnreachableError
from clients.client.retries import Outage, Retries
from clients.processes import free_port
from syntax.errors import (
    DeadlineError,
    ExampleError,
    OverloadedError,
    ParsebankError,
    SpecError,
    UnknownJobError,
)
from syntax.examples import DatasetSpec, Example, Segment

QUICK = Retries(attempts=3, first=0.01)
SPEC = DatasetSpec("d", "dev", "en", ("text",))
EXAMPLES = [Example("1", (Segment(text="a"),))]

Run = Callable[..., Any]


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Run:
    """Call a method of a fresh client; events come back as a list."""

    def run_sync(url: str, method: str, *args: Any, **options: Any) -> Any:
        with Client(url, retries=QUICK, timeout=options.pop("timeout", 5.0)) as client:
            result = getattr(client, method)(*args, **options)
            return list(result) if method == "events" else result

    async def over_async(url: str, method: str, *args: Any, **options: Any) -> Any:
        async with AsyncClient(url, retries=QUICK, timeout=options.pop("timeout", 5.0)) as client:
            if method == "events":
                return [job async for job in client.events(*args)]
            return await getattr(client, method)(*args, **options)

    def run_async(*args: Any, **options: Any) -> Any:
        return asyncio.run(over_async(*args, **options))

    return run_sync if request.param == "sync" else run_async


def test_overload_is_retried_after_retry_after(run, script, answer):
    script.play(answer(429, {}, {"Retry-After": "0.2"}), answer(200, {"name": "parsebank"}))
    started = time.monotonic()
    assert run(script.url, "info") == {"name": "parsebank"}
    assert time.monotonic() - started >= 0.2
    assert len(script.requests) == 2


def test_persistent_overload_is_raised(run, script, answer):
    body = {"error": {"error_type": "overloaded", "message": "full", "detail": {}}}
    script.play(answer(429, body))
    with pytest.raises(OverloadedError, match="full"):
        run(script.url, "parse", "A text.")
    assert len(script.requests) == 3


def test_broken_connection_is_retried(run, script, answer):
    script.play(answer(0), answer(200, {}))
    assert run(script.url, "info") == {}


def test_backfill_is_not_retried(run, script, answer):
    script.play(answer(429, {}))
    with pytest.raises(OverloadedError):
        run(script.url, "backfill", SPEC, EXAMPLES)
    script.play(answer(0))
    with pytest.raises(ServiceUnreachableError):
        run(script.url, "backfill", SPEC, EXAMPLES)
    assert len(script.requests) == 2


def test_examples_that_fail_raise_their_own_error(run, script, answer):
    def failing():
        yield from EXAMPLES
        raise ExampleError("broken file")

    script.play(answer(200, {}))
    with pytest.raises(ExampleError, match="broken file"):
        run(script.url, "backfill", SPEC, failing())


def test_unreachable_error_names_the_address(run):
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ServiceUnreachableError, match=f"no Parsebank service answers at {url}"):
        run(url, "info")


def test_a_base_url_without_scheme_is_a_usage_error(run):
    with pytest.raises(SpecError, match="http://HOST:PORT"):
        run("localhost:8000", "info")


def test_named_errors_are_raised_at_once(run, script, answer):
    body = {"error": {"error_type": "unknown_job", "message": "no such job", "detail": {"id": "x"}}}
    script.play(answer(404, body))
    with pytest.raises(UnknownJobError, match="no such job") as caught:
        run(script.url, "job", "a/b c")
    assert caught.value.detail == {"id": "x"}
    assert script.requests == [("GET", "/jobs/a%2Fb%20c")]


def test_server_error_is_not_retried(run, script, answer):
    script.play(answer(500, b"oops"))
    with pytest.raises(ParsebankError, match="answered 500: oops"):
        run(script.url, "models")
    assert len(script.requests) == 1


def test_read_timeout_is_a_deadline_error(run, script):
    class Late:
        status, headers = 200, {}

        def content(self) -> bytes:
            time.sleep(0.6)
            return b"{}"

    script.play(Late())
    with pytest.raises(DeadlineError):
        run(script.url, "info", timeout=0.2)


def event(name: str, job: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(job)}\n\n".encode()


STREAM = {"content-type": "text/event-stream"}


def test_events_skip_unchanged_jobs(run, script, answer, job_json):
    done = job_json | {"state": "done"}
    stream = event("progress", job_json) + event("progress", done) + event("end", done)
    script.play(answer(200, stream, STREAM))
    assert [job.state for job in run(script.url, "events", "j1")] == ["running", "done"]
    assert script.requests == [("GET", "/jobs/j1/events")]


def test_events_poll_after_a_broken_stream(run, script, answer, job_json):
    done = job_json | {"state": "done"}
    script.play(answer(200, event("progress", job_json), STREAM), answer(200, done))
    assert [job.state for job in run(script.url, "events", "j1")] == ["running", "done"]
    assert script.requests == [("GET", "/jobs/j1/events"), ("GET", "/jobs/j1")]


def test_events_poll_if_the_server_has_no_stream(run, script, answer, job_json):
    done = job_json | {"state": "failed"}
    script.play(answer(404, {}), answer(200, job_json), answer(200, job_json), answer(200, done))
    assert [job.state for job in run(script.url, "events", "j1")] == ["running", "failed"]


def test_wait_reports_progress_and_returns_the_last_state(run, script, answer, job_json):
    done = job_json | {"state": "done"}
    stream = event("progress", job_json) + event("end", done)
    script.play(answer(200, stream, STREAM))
    seen: list[str] = []
    last = run(script.url, "wait", "j1", lambda job: seen.append(job.state))
    assert last.state == "done"
    assert seen == ["running", "done"]


def test_jobs_are_decoded(run, script, answer, job_json):
    script.play(answer(200, [job_json]))
    (job,) = run(script.url, "jobs")
    assert (job.id, job.dataset, job.shards.total) == ("j1", "sample", 2)
    assert (job.counts.parses_done, job.counts.parses_reused) == (70, 30)
    assert job.counts.accounted == 50
    assert not job.is_over
    script.play(answer(200, job_json | {"state": "cancelled"}))
    assert run(script.url, "cancel", "j1").is_over
    assert script.requests[-1] == ("DELETE", "/jobs/j1")


def test_parse_needs_exactly_one_form(run, script):
    with pytest.raises(SpecError, match="needs one of text, texts and tokens; got none"):
        run(script.url, "parse")
    with pytest.raises(SpecError, match=r"got \['text', 'tokens'\]"):
        run(script.url, "parse", "a", tokens=[["a"]])
    with pytest.raises(TypeError, match="no keyword langauge"):
        run(script.url, "parse", "a", langauge="en")


@pytest.mark.slow
def test_events_continue_after_a_restart(run, script, answer, job_json):
    running, done = job_json | {"state": "running"}, job_json | {"state": "done"}
    away = [answer(0)] * QUICK.attempts
    not_ready = answer(503, {"error": {"error_type": "not_ready", "message": "starting"}})
    gateway = answer(502, b"bad gateway")
    polled = answer(404, {})  # no events: it is asked again and again
    script.play(polled, answer(200, running), *away, not_ready, gateway, answer(200, done))
    told = []
    job = run(script.url, "wait", "j", None, lambda error, left: told.append((error, left)))
    assert job.state == "done"
    assert [type(error).__name__ for error, _ in told] == [
        "ServiceUnreachableError",
        "NotReadyError",
        "ParsebankError",
    ]
    assert all(0 < left < 301 for _, left in told)


def test_events_raise_after_a_long_outage():
    failure = ServiceUnreachableError("gone")
    with pytest.raises(ServiceUnreachableError):
        Outage(0.0, None).pause(failure)
    outage = Outage(60.0, None)
    assert 0 < outage.pause(failure) <= 1
    with pytest.raises(UnknownJobError):
        outage.pause(UnknownJobError("no such job"))


@pytest.mark.parametrize("method", ["wait", "events"])
def test_events_raise_if_the_service_never_answered(run, method):
    with pytest.raises(ServiceUnreachableError):
        run(f"http://127.0.0.1:{free_port()}", method, "j")


def test_events_wait_out_an_outage_after_a_backfill(script, answer, job_json):
    done = job_json | {"state": "done"}
    polled = answer(404, {})
    script.play(answer(202, job_json), polled, *[answer(0)] * QUICK.attempts, answer(200, done))
    with Client(script.url, retries=QUICK) as client:
        job = client.backfill(SPEC, EXAMPLES)
        assert client.wait(job.id).state == "done"
