"""Retries of calls and their pauses."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import httpx

from clients.client.failures import ServiceUnreachableError
from syntax.errors import (
    DeadlineError,
    NotReadyError,
    OverloadedError,
    ParsebankError,
    RateLimitError,
    SpecError,
)

MAX_OUTAGE_SECONDS: Final = 300.0
"""Longest outage that a client waits out while it follows a job."""

OUTAGE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Retries:
    """Exponential back-off with jitter; a ``Retry-After`` header overrides it.

    Attributes:
        attempts: Number of attempts, the first included.
        first: Seconds before the second attempt; each later pause is twice as long.
        longest: Longest pause in seconds, also with ``Retry-After``.
    """

    attempts: int = 4
    first: float = 0.25
    longest: float = 30.0

    def pause(self, failure: Exception, attempt: int, *, replayable: bool) -> float:
        """Seconds to wait before the next attempt; raises the failure if there must be none.

        ``attempt`` is 1 after the first; a ``replayable`` call may be sent twice.
        """
        error = as_named(failure)
        again = isinstance(error, (OverloadedError, RateLimitError, ServiceUnreachableError))
        if not (again and replayable) or attempt >= self.attempts:
            raise error from failure
        asked = error.detail.get("retry_after")
        wait = self.first * 2 ** (attempt - 1) if asked is None else float(asked)
        return min(wait, self.longest) * random.uniform(1.0, 1.25)


OnOutage = Callable[[ParsebankError, float], Any]
"""Called with the error and the seconds left to wait."""


class Outage:
    """An outage of the service, such as a restart, while a client follows a job."""

    def __init__(self, seconds: float, on_outage: OnOutage | None) -> None:
        self._seconds = seconds
        self._on_outage = on_outage
        self._until: float | None = None

    def end(self) -> None:
        self._until = None

    def pause(self, failure: ParsebankError) -> float:
        """Seconds until the next attempt; raises a failure that is not an outage, or too long."""
        now = time.monotonic()
        self._until = self._until or now + self._seconds
        left = self._until - now
        if not is_away(failure) or left <= 0:
            raise failure
        if self._on_outage is not None:
            self._on_outage(failure, left)
        return min(OUTAGE_SECONDS, left)


def is_away(failure: ParsebankError) -> bool:
    """True if the service, or a proxy in front of it, may be restarting."""
    gone = isinstance(failure, ServiceUnreachableError | NotReadyError)
    return gone or failure.detail.get("status") in (502, 503, 504)


def as_named(failure: Exception) -> ParsebankError:
    if isinstance(failure, ParsebankError):
        return failure
    if isinstance(failure, httpx.UnsupportedProtocol):
        return SpecError(f"{failure}; give the service's address as http://HOST:PORT")
    if isinstance(failure, (httpx.ReadTimeout, httpx.WriteTimeout)):
        return DeadlineError("no answer came in time; send less at once or raise the timeout")
    # httpx attaches the request late; until then, its property raises.
    try:
        url = failure.request.url if isinstance(failure, httpx.RequestError) else None
    except RuntimeError:
        url = None
    address = f"{url.scheme}://{url.netloc.decode()}" if url else "the address given"
    return ServiceUnreachableError(
        f"no Parsebank service answers at {address} ({failure or type(failure).__name__}); "
        "start one with `parsebank serve`, or give the address of another"
    )
