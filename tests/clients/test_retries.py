from __future__ import annotations

import httpx
import pytest

from clients.client.failures import ServiceUnreachableError
from clients.client.retries import Retries, as_named
from syntax.errors import DeadlineError, OverloadedError, SpecError, UnknownJobError

BUSY = OverloadedError("full")


def test_pauses_double_and_jitter_a_quarter():
    retries = Retries(attempts=5, first=1.0)
    for attempt, least in ((1, 1.0), (2, 2.0), (3, 4.0)):
        assert least <= retries.pause(BUSY, attempt, replayable=True) <= least * 1.25


def test_retry_after_sets_the_pause():
    error = OverloadedError("full", retry_after=7)
    assert 7 <= Retries().pause(error, 1, replayable=True) <= 7 * 1.25


def test_no_pause_is_longer_than_allowed():
    error = OverloadedError("full", retry_after=3600)
    assert Retries(longest=2.0).pause(error, 1, replayable=True) <= 2.5


def test_the_last_attempt_raises():
    with pytest.raises(OverloadedError):
        Retries(attempts=3).pause(BUSY, 3, replayable=True)


def test_unreplayable_call_is_not_retried():
    with pytest.raises(ServiceUnreachableError):
        Retries().pause(httpx.ConnectError("refused"), 1, replayable=False)


@pytest.mark.parametrize(
    ("failure", "named"),
    [
        (httpx.ReadTimeout("slow"), DeadlineError),
        (httpx.UnsupportedProtocol("no scheme"), SpecError),
        (UnknownJobError("no such job"), UnknownJobError),
    ],
)
def test_permanent_failure_is_raised_at_once(failure, named):
    with pytest.raises(named):
        Retries().pause(failure, 1, replayable=True)


def test_unreachable_message_has_the_address():
    request = httpx.Request("GET", "http://127.0.0.1:9/info")
    error = as_named(httpx.ConnectError("refused", request=request))
    assert "no Parsebank service answers at http://127.0.0.1:9 (refused)" in error.message
    assert "at the address given" in as_named(httpx.ConnectError("refused")).message
