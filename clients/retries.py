"""When to try a call again, and how long to wait before."""

from __future__ import annotations

import random
from dataclasses import dataclass

import httpx

from clients.failures import ServiceUnreachableError
from syntax.errors import (
    DeadlineError,
    OverloadedError,
    ParsebankError,
    RateLimitError,
    SpecError,
)


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
