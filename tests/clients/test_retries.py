from __future__ import annotations

import httpx

from clients.client.retries import Retries, as_named
from syntax.errors import OverloadedError

BUSY = OverloadedError("full")


def test_pauses_double_and_jitter_a_quarter():
    retries = Retries(attempts=5, first=1.0)
    for attempt, least in ((1, 1.0), (2, 2.0), (3, 4.0)):
        assert least <= retries.pause(BUSY, attempt, replayable=True) <= least * 1.25


def test_no_pause_is_longer_than_allowed():
    error = OverloadedError("full", retry_after=3600)
    assert Retries(longest=2.0).pause(error, 1, replayable=True) <= 2.5


def test_a_service_without_a_known_address_is_unreachable_all_the_same():
    assert "at the address given" in as_named(httpx.ConnectError("refused")).message
