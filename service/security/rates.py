"""Rate limits: a number of requests in any window of a given length, counted in this process."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass
from typing import Final

from limits import RateLimitItem, parse_many
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from syntax.errors import RateLimitError, SpecError

RATE_HEADERS: Final = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
"""Headers that tell an admitted caller about its window."""

_RAW_HEADERS: Final = tuple(name.lower().encode() for name in RATE_HEADERS)
_SWEEP_SECONDS: Final = 60.0


def parse_rate(text: str) -> RateLimitItem:
    """Parse a rate such as ``600/minute``.

    >>> parse_rate("600/minute")
    600 per 1 minute
    >>> parse_rate("10 per 2 seconds")
    10 per 2 second

    Raises:
        SpecError: The text is not one rate.
    """
    try:
        rates = [rate for rate in parse_many(text) if rate.amount >= 1 and rate.multiples >= 1]
    except ValueError:
        rates = []
    if len(rates) != 1:
        raise SpecError(f"{text!r} is no rate limit; write one like 600/minute or 5/second")
    return rates[0]


@dataclass(frozen=True)
class RateLimitStatus:
    """The window of one caller.

    Attributes:
        limit: Requests that a window admits.
        remaining: Requests left in the window.
        seconds: Seconds until the oldest request leaves the window, rounded up.
    """

    limit: int
    remaining: int
    seconds: int

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The response headers."""
        values = (self.limit, self.remaining, self.seconds)
        return [(name, b"%d" % value) for name, value in zip(_RAW_HEADERS, values, strict=True)]


class RateLimits:
    """The windows of all callers; belongs to one event loop."""

    def __init__(self) -> None:
        self._windows = MovingWindowRateLimiter(_Windows())

    def hit(self, rate: RateLimitItem, who: str) -> RateLimitStatus:
        """Count a request.

        Args:
            rate: The limit.
            who: Name of a key, or an address.

        Raises:
            RateLimitError: The window is full.
        """
        admitted = self._windows.hit(rate, who)
        window = self._windows.get_window_stats(rate, who)
        seconds = max(math.ceil(window.reset_time - time.time()), 1)
        if not admitted:
            raise RateLimitError(
                f"more than {rate} came; try again in {seconds} s, send several texts in one "
                "request, or ask the operator for a higher limit",
                retry_after=seconds,
                limit=rate.amount,
            )
        return RateLimitStatus(rate.amount, window.remaining, seconds)


class _Windows(MemoryStorage):
    """The library's store of moving windows, with operations in constant time.

    The library's own store starts a thread for each request, moves all entries of a window for
    each new one, and never drops an address.
    """

    def __init__(self) -> None:
        super().__init__()
        self.timer.cancel()
        self._times: dict[str, deque[float]] = {}
        self._lengths: dict[str, int] = {}
        self._next_sweep = time.monotonic() + _SWEEP_SECONDS

    def __len__(self) -> int:
        return len(self._times)

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Add ``amount`` requests unless the window is full."""
        if time.monotonic() >= self._next_sweep:
            self._sweep()
        self._lengths[key] = expiry
        times = self._current(key)
        if len(times) + amount > limit:
            return False
        times.extend([time.time()] * amount)
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:  # noqa: ARG002
        """Time of the oldest request in the window, and the number of requests."""
        times = self._current(key)
        return (times[0], len(times)) if times else (time.time(), 0)

    def _current(self, key: str) -> deque[float]:
        times = self._times.setdefault(key, deque())
        over = time.time() - self._lengths.get(key, 0)
        while times and times[0] <= over:
            times.popleft()
        return times

    def _sweep(self) -> None:
        """Drop callers without a request in the length of a window."""
        self._next_sweep = time.monotonic() + _SWEEP_SECONDS
        for key in [key for key in self._times if not self._current(key)]:
            del self._times[key], self._lengths[key]
