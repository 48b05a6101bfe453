"""Tries of a commit, and the reason when it fails."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Final

ATTEMPTS: Final = 12
"""Tries of one commit before `StoreBusyError`; with the waits below, about six seconds."""

_BACKTRACE: Final = re.compile(r"^\s*0: ", re.MULTILINE)
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


def waits() -> Iterator[float]:
    """Seconds to wait after each lost commit: exponential, capped, with jitter."""
    for attempt in range(ATTEMPTS):
        # Processes forked from one share the state of `random`, and would wait alike.
        yield random.SystemRandom().uniform(0.5, 1.0) * min(1.0, 0.02 * 2**attempt)


def reason(error: Exception) -> str:
    """The message of the table library, on one line, without colours and without its backtrace."""
    message, *_ = _BACKTRACE.split(_COLOURS.sub("", str(error)))
    return " ".join(message.replace("↳", "").split())
