"""Counts of the workers' texts and batches, by model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal

from prometheus_client import Histogram

from service.timing import SECONDS

Reason = Literal["died", "deadline", "recycled_texts", "recycled_memory"]
"""Reason why a worker was replaced: it died; it was killed after a deadline; it had parsed
``worker_max_texts``; it had grown by ``worker_max_growth_mb``.
"""

_WORDS: Final = (1, 5, 10, 25, 50, 100, 200, 350, 700, 1_500, 5_000)


@dataclass
class PoolStats:
    """Counts of one model's workers; they never decrease, also when the model is reloaded.

    Attributes:
        batch_words: Words of each completed batch.
        batch_seconds: Seconds from sending each completed batch to its last answer.
        texts: Texts answered by a parse or by an error of the text.
    """

    batch_words: Histogram
    batch_seconds: Histogram
    texts: int = 0
    replaced: Counter[Reason] = field(default_factory=Counter)
    loads: int = 0
    fork_server_restarts: int = 0


class StatsByParser(dict[str, PoolStats]):
    """Counts of all models, by name, made at first access; `histograms` are of batches."""

    def __init__(self) -> None:
        super().__init__()
        self.histograms = (
            Histogram(
                "parsebank_batch_words",
                "Words in a batch that a worker parsed.",
                ["parser"],
                registry=None,
                buckets=_WORDS,
            ),
            Histogram(
                "parsebank_batch_seconds",
                "Time that a worker took for a batch.",
                ["parser"],
                registry=None,
                buckets=SECONDS,
            ),
        )

    def __missing__(self, parser: str) -> PoolStats:
        words, seconds = self.histograms
        self[parser] = PoolStats(words.labels(parser), seconds.labels(parser))
        return self[parser]
