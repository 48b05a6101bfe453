"""Rate limits: a number of requests in any window of a given length, counted in this process."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass
from typing import Final

from limits import RateLimitItem, parse_many

from syntax.errors import RateLimitError, SpecError

RATE_HEADERS: Final = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")

_RAW_HEADERS: Final = tuple(name.lower().encode() for name in RATE_HEADERS)
_SWEEP_SECONDS: Final = 60.0


def parse_rate(text: str) -> RateLimitItem:
    """Parse a rate.

    >>> parse_rate("600/minute")
    600 per 1 minute
    >>> parse_rate("10 per 2 seconds")
    10 per 2 second
    """
    try:
        rates = [rate for rate in parse_many(text) if rate.amount >= 1 and rate.multiples >= 1]
    except ValueError:
        rates = []
    if len(rates) != 1:
        raise SpecError(f"{text!r} is not a rate limit; write one like 600/minute or 5/second")
    return rates[0]


@dataclass(frozen=True)
class RateLimitStatus:
    """Window of one caller: its size, its rest, and seconds until it moves."""

    limit: int
    remaining: int
    seconds: int

    def headers(self) -> list[tuple[bytes, bytes]]:
        values = (self.limit, self.remaining, self.seconds)
        return [(name, b"%d" % value) for name, value in zip(_RAW_HEADERS, values, strict=True)]


class RateLimits:
    """The windows of all callers, in constant time for a request; belongs to one event loop."""

    def __init__(self) -> None:
        self._windows: dict[str, tuple[int, deque[float]]] = {}
        self._next_sweep = time.time() + _SWEEP_SECONDS

    def __len__(self) -> int:
        return len(self._windows)

    def hit(self, rate: RateLimitItem, who: str) -> RateLimitStatus:
        """Count a request of a caller, named by key or address; refuse it if the window is full."""
        now = time.time()
        if now >= self._next_sweep:
            self._sweep(now)
        length = rate.get_expiry()
        _, times = self._windows.setdefault(rate.key_for(who), (length, deque()))
        while times and times[0] <= now - length:
            times.popleft()
        admitted = len(times) < rate.amount
        if admitted:
            times.append(now)
        seconds = max(math.ceil(times[0] + length - now), 1)
        if not admitted:
            raise RateLimitError(
                f"more than {rate} came; try again in {seconds} s, send several texts in one "
                "request, or ask the operator for a higher limit",
                retry_after=seconds,
                limit=rate.amount,
            )
        return RateLimitStatus(rate.amount, rate.amount - len(times), seconds)

    def _sweep(self, now: float) -> None:
        self._next_sweep = now + _SWEEP_SECONDS
        for key, (length, times) in list(self._windows.items()):
            if times[-1] <= now - length:
                del self._windows[key]
