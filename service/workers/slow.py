"""Texts on which a parser computes for too long, remembered so that they hold no worker again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from service.parsers import ParseInput
from service.settings import Settings
from syntax.errors import TextTooSlowError

SHARE: Final = 0.5
"""Share of `request_deadline_seconds` computed in vain after which a text is too slow."""

REMEMBERED_SECONDS: Final = 3_600.0
"""Time after which a text may be tried again, in case the verdict was wrong."""

MOST: Final = 1_000

_Key = tuple[str, bytes]


@dataclass(slots=True)
class _Vain:
    """Seconds spent on a text without an answer, and the end of this memory."""

    seconds: float
    until: float


class SlowTexts:
    """The texts that workers gave up, of all models; in memory only, so a restart forgets them.

    Only processor time counts: waiting is not a fault of the text.
    """

    def __init__(self, settings: Settings) -> None:
        self._allowed = settings.request_deadline_seconds * SHARE
        self._known: dict[_Key, _Vain] = {}

    def add(self, fingerprint: str, item: ParseInput, seconds: float) -> TextTooSlowError | None:
        """Add processor seconds spent on a text in vain; returns its error if it is too slow."""
        if len(self._known) >= MOST:
            del self._known[next(iter(self._known))]
        now = time.monotonic()
        known = self._known.setdefault(_key(fingerprint, item), _Vain(0.0, now))
        known.seconds = seconds + (known.seconds if known.until > now else 0.0)
        known.until = now + REMEMBERED_SECONDS
        return self.error(fingerprint, item)

    def error(self, fingerprint: str, item: ParseInput) -> TextTooSlowError | None:
        known = self._known.get(_key(fingerprint, item)) if self._known else None
        if known is None or known.seconds < self._allowed or known.until <= time.monotonic():
            return None
        return TextTooSlowError(
            f"the parser has computed for {known.seconds:.0f} s on this text without an answer: "
            "long runs without white space, of commas or brackets, take a time quadratic in their "
            "length. Shorten them, split the text, or raise request_deadline_seconds; this text is "
            "refused for an hour, or until a restart",
            seconds=round(known.seconds, 1),
        )


def _key(fingerprint: str, item: ParseInput) -> _Key:
    return fingerprint, blake2b(repr(item).encode(), digest_size=16).digest()
