"""When to try a call again, and how long to wait before."""

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

PATIENCE_SECONDS: Final = 300.0
"""How long one who follows a job waits for a service that is away."""

OUTAGE_SECONDS: Final = 1.0
"""Between two tries to reach it."""


@dataclass(frozen=True, slots=True)
class Retries:
    """Exponential back-off with jitter; a server's ``Retry-After`` goes before it.

    Attributes:
        attempts: How often a call is made in all.
        first: Seconds before the second attempt; each later pause is twice as long.
        longest: No pause exceeds this many seconds, whatever the server asks.
    """

    attempts: int = 4
    first: float = 0.25
    longest: float = 30.0

    def pause(self, failure: Exception, attempt: int, *, replayable: bool) -> float:
        """Seconds to wait before the next attempt.

        Args:
            failure: What `attempt` ended with: `OverloadedError`, `RateLimitError` or an ``httpx``
                error.
            attempt: Attempts made so far, 1 after the first.
            replayable: Whether doing the call twice is the same as doing it once.

        Raises:
            ParsebankError: There is no point, or no leave, in trying again.
        """
        error = as_named(failure)
        again = isinstance(error, (OverloadedError, RateLimitError, ServiceUnreachableError))
        if not (again and replayable) or attempt >= self.attempts:
            raise error from failure
        asked = error.detail.get("retry_after")
        wait = self.first * 2 ** (attempt - 1) if asked is None else float(asked)
        return min(wait, self.longest) * random.uniform(1.0, 1.25)


OnOutage = Callable[[ParsebankError, float], Any]
"""Is told why there is no answer, and for how many seconds one will go on waiting."""


class Outage:
    """The patience of one who follows a job while the service is away, as when it is restarted.

    Args:
        seconds: How long it may be away.
        on_outage: Called before each pause.
    """

    def __init__(self, seconds: float, on_outage: OnOutage | None) -> None:
        self._seconds = seconds
        self._on_outage = on_outage
        self._until: float | None = None

    def end(self) -> None:
        """Note that the service has answered."""
        self._until = None

    def pause(self, failure: ParsebankError) -> float:
        """Seconds until it should be asked again.

        Raises:
            ParsebankError: The failure, if it is none of a service that is away, or if that has
                lasted for too long.
        """
        now = time.monotonic()
        self._until = self._until or now + self._seconds
        left = self._until - now
        if not is_away(failure) or left <= 0:
            raise failure
        if self._on_outage is not None:
            self._on_outage(failure, left)
        return min(OUTAGE_SECONDS, left)


def is_away(failure: ParsebankError) -> bool:
    """Whether a failure is what a service shows that is being restarted, or a proxy before it."""
    gone = isinstance(failure, ServiceUnreachableError | NotReadyError)
    return gone or failure.detail.get("status") in (502, 503, 504)


def as_named(failure: Exception) -> ParsebankError:
    """Our name for a failure of the transport; our own errors pass through."""
    if isinstance(failure, ParsebankError):
        return failure
    if isinstance(failure, httpx.UnsupportedProtocol):
        return SpecError(f"{failure}; give the service's address as http://HOST:PORT")
    if isinstance(failure, (httpx.ReadTimeout, httpx.WriteTimeout)):
        return DeadlineError("no answer came in time; send less at once or raise the timeout")
    address = _address(failure)
    return ServiceUnreachableError(
        f"no Parsebank service answers at {address} ({failure or type(failure).__name__}); "
        "start one with `parsebank serve`, or give the address of another"
    )


def _address(failure: Exception) -> str:
    # httpx attaches the request late, and its property raises while there is none.
    try:
        url = failure.request.url if isinstance(failure, httpx.RequestError) else None
    except RuntimeError:
        url = None
    return f"{url.scheme}://{url.netloc.decode()}" if url else "the address given"
