"""Counts of what a model's workers have done."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal

from service.timing import SECONDS, Histogram

Reason = Literal["died", "deadline", "recycled_texts", "recycled_memory"]
"""Why a worker was replaced: it died; it was killed after a deadline; it had parsed
``worker_max_texts``; it had grown by ``worker_max_growth_mb``."""

_WORDS: Final = (1, 5, 10, 25, 50, 100, 200, 350, 700, 1_500, 5_000)


@dataclass
class PoolStats:
    """Counts of one model's workers; they never decrease, also when the model is reloaded.

    Attributes:
        texts: Texts answered by a parse or by an error of the text.
        batch_words: Words of each completed batch.
        batch_seconds: Seconds from sending each completed batch to its last answer.
        replaced: Workers replaced, by `Reason`.
        loads: Times that the model was loaded.
        fork_server_restarts: Times that the fork server died and was replaced.
    """

    texts: int = 0
    batch_words: Histogram = field(default_factory=lambda: Histogram(_WORDS))
    batch_seconds: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    replaced: Counter[Reason] = field(default_factory=Counter)
    loads: int = 0
    fork_server_restarts: int = 0
