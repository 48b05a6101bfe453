"""Histograms of the times of a request's stages."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final, Literal, get_args

Stage = Literal["lookup", "queue", "parse", "store", "derive", "render"]
"""``lookup`` of parses in the store, wait in the ``queue``, ``parse`` of one text, write to the
``store``, ``derive`` pieces and matrices, ``render`` the answer."""

STAGES: Final[tuple[Stage, ...]] = get_args(Stage)

SECONDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
"""Upper bounds of durations, from a lookup in memory to the longest deadline."""


class Histogram:
    """Counts of values by upper bound. Safe for threads.

    Args:
        bounds: Upper bounds, ascending; larger values are counted too.

    Attributes:
        counts: Values up to each bound and above the previous one; the last counts larger values.
        total: Sum of the values.

    >>> sizes = Histogram((1, 10))
    >>> sizes.observe(10); sizes.observe(11); sizes.counts, sizes.total
    ([0, 1, 1], 21.0)
    """

    __slots__ = ("_lock", "bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0
        self._lock = threading.Lock()

    def observe(self, value: float) -> None:
        """Count a value."""
        at = bisect_left(self.bounds, value)
        with self._lock:
            self.counts[at] += 1
            self.total += value


class Stages:
    """The stages of all requests; any thread may measure.

    >>> stages = Stages()
    >>> with stages.measure("lookup"):
    ...     found = {}
    >>> sum(stages.histograms["lookup"].counts)
    1
    """

    def __init__(self) -> None:
        self.histograms: Mapping[Stage, Histogram] = {name: Histogram(SECONDS) for name in STAGES}

    def measure(self, stage: Stage) -> Measured:
        """Time the block of a ``with`` statement, whether or not it raises."""
        return Measured(self.histograms[stage])

    def observe(self, stage: Stage, seconds: float) -> None:
        """Count a duration that was taken elsewhere."""
        self.histograms[stage].observe(seconds)


class Measured:
    """The block that `Stages.measure` times."""

    __slots__ = ("_histogram", "_started")

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._histogram.observe(time.perf_counter() - self._started)
