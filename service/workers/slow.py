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
"""Share of `request_deadline_seconds` that workers must have computed on a text in vain, for the
text to be too slow."""

REMEMBERED_SECONDS: Final = 3_600.0
"""After this time a text may be tried again: a verdict that was wrong mends itself."""

MOST: Final = 1_000

_Key = tuple[str, bytes]


@dataclass(slots=True)
class _Vain:
    """What was spent on a text without an answer, and until when that is remembered."""

    seconds: float
    until: float


class SlowTexts:
    """The texts that workers gave up, of all models; in memory only, so a restart forgets them.

    What counts is the processor's time: that a text waits in the queue, or its worker for a
    processor, is no fault of the text.
    """

    def __init__(self, settings: Settings) -> None:
        self._allowed = settings.request_deadline_seconds * SHARE
        self._known: dict[_Key, _Vain] = {}

    def add(self, fingerprint: str, item: ParseInput, seconds: float) -> TextTooSlowError | None:
        """Remember that a worker has computed on a text in vain; the text's error if it is one.

        Args:
            fingerprint: Of the parser.
            item: The text.
            seconds: Of the processor.
        """
        if len(self._known) >= MOST:
            del self._known[next(iter(self._known))]
        now = time.monotonic()
        known = self._known.setdefault(_key(fingerprint, item), _Vain(0.0, now))
        known.seconds = seconds + (known.seconds if known.until > now else 0.0)
        known.until = now + REMEMBERED_SECONDS
        return self.error(fingerprint, item)

    def error(self, fingerprint: str, item: ParseInput) -> TextTooSlowError | None:
        """The error of a text that is too slow for a parser."""
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
