"""Times of a request's stages, as a histogram of Prometheus."""

from __future__ import annotations

from typing import Final, Literal, get_args

from prometheus_client import Histogram
from prometheus_client.context_managers import Timer

Stage = Literal["lookup", "queue", "parse", "store", "derive", "render"]
"""``lookup`` of parses in the store, wait in the ``queue``, ``parse`` of one text, write to the
``store``, ``derive`` pieces and matrices, ``render`` the answer.
"""

STAGES: Final[tuple[Stage, ...]] = get_args(Stage)

SECONDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)


class Stages:
    """The stages of all requests; any thread may measure.

    >>> stages = Stages()
    >>> with stages.measure("lookup"):
    ...     found = {}
    """

    def __init__(self) -> None:
        self.histogram = Histogram(
            "parsebank_stage_seconds",
            "Time that a request spent in a stage.",
            ["stage"],
            registry=None,
            buckets=SECONDS,
        )
        self._stages = {name: self.histogram.labels(name) for name in STAGES}

    def measure(self, stage: Stage) -> Timer:
        return self._stages[stage].time()

    def observe(self, stage: Stage, seconds: float) -> None:
        self._stages[stage].observe(seconds)
