"""What a model's workers have done so far: plain counts, for whoever shows them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal

from service.timing import SECONDS, Histogram

Reason = Literal["died", "deadline", "recycled_texts", "recycled_memory"]
"""Why a worker was replaced: it died by itself or from outside; it was ended for being past a
deadline; it had parsed ``worker_max_texts``; it had grown by ``worker_max_growth_mb``."""

_WORDS: Final = (1, 5, 10, 25, 50, 100, 200, 350, 700, 1_500, 5_000)


@dataclass
class PoolStats:
    """Counts of one model's workers; they only grow, also when the model is unloaded and back.

    Attributes:
        texts: Texts that workers have answered, by a parse or by an error of the text.
        batch_words: Words in each batch that was answered whole.
        batch_seconds: How long each of these took, from handing it over to the last answer.
        replaced: Workers replaced, by `Reason`.
        loads: Times that the model was loaded because it was not.
        nursery_restarts: Times that the process which holds the model had died and was replaced.
    """

    texts: int = 0
    batch_words: Histogram = field(default_factory=lambda: Histogram(_WORDS))
    batch_seconds: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    replaced: Counter[Reason] = field(default_factory=Counter)
    loads: int = 0
    nursery_restarts: int = 0
