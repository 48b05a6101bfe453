"""Rate limits: so many requests in any window of a given length, counted in this process."""

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
"""What an admitted request is told about its window."""

_RAW_HEADERS: Final = tuple(name.lower().encode() for name in RATE_HEADERS)
_SWEEP_SECONDS: Final = 60.0


def parse_rate(text: str) -> RateLimitItem:
    """A rate in words.

    >>> parse_rate("600/minute")
    600 per 1 minute
    >>> parse_rate("10 per 2 seconds")
    10 per 2 second

    Raises:
        SpecError: It is none.
    """
    try:
        rates = [rate for rate in parse_many(text) if rate.amount >= 1 and rate.multiples >= 1]
    except ValueError:
        rates = []
    if len(rates) != 1:
        raise SpecError(f"{text!r} is no rate limit; write one like 600/minute or 5/second")
    return rates[0]


@dataclass(frozen=True)
class Standing:
    """Where somebody stands in their window.

    Attributes:
        limit: Requests that a window admits.
        remaining: Requests that are left in this one.
        seconds: Until the oldest request leaves it, rounded up.
    """

    limit: int
    remaining: int
    seconds: int

    def headers(self) -> list[tuple[bytes, bytes]]:
        """As response headers."""
        values = (self.limit, self.remaining, self.seconds)
        return [(name, b"%d" % value) for name, value in zip(_RAW_HEADERS, values, strict=True)]


class RateLimits:
    """The windows of all callers; belongs to one event loop."""

    def __init__(self) -> None:
        self._windows = MovingWindowRateLimiter(_Windows())

    def hit(self, rate: RateLimitItem, who: str) -> Standing:
        """Count a request.

        Args:
            rate: What is allowed.
            who: Name of a key, or an address.

        Raises:
            RateLimitError: It is one too many.
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
        return Standing(rate.amount, window.remaining, seconds)


class _Windows(MemoryStorage):
    """The library's store of moving windows, with steps that cost the same however much is in them.

    Its own starts a thread for each request, moves all entries of a window for each new one, and
    keeps every address that it has ever seen.
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
        """Enter ``amount`` requests unless the window is full."""
        if time.monotonic() >= self._next_sweep:
            self._sweep()
        self._lengths[key] = expiry
        times = self._current(key)
        if len(times) + amount > limit:
            return False
        times.extend([time.time()] * amount)
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:  # noqa: ARG002
        """When the oldest request of the window came, and how many there are."""
        times = self._current(key)
        return (times[0], len(times)) if times else (time.time(), 0)

    def _current(self, key: str) -> deque[float]:
        times = self._times.setdefault(key, deque())
        over = time.time() - self._lengths.get(key, 0)
        while times and times[0] <= over:
            times.popleft()
        return times

    def _sweep(self) -> None:
        """Forget who has not come for the length of a window."""
        self._next_sweep = time.monotonic() + _SWEEP_SECONDS
        for key in [key for key in self._times if not self._current(key)]:
            del self._times[key], self._lengths[key]
