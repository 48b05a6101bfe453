"""Options of structural probes (Hewitt and Manning 2019, https://aclanthology.org/N19-1419)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from syntax.errors import SpecError
from trainer.options.checks import check_positive, check_range
from trainer.options.task import TASK_OPTIONS, TaskOptions

METRICS = {"distance": ("uuas", "spearman"), "depth": ("root_accuracy", "spearman")}
"""What models can be selected on, by what the probe tells."""


@dataclass(frozen=True, slots=True)
class StructuralProbeOptions(TaskOptions):
    """How much of the trees a linear map of the states tells; no label column is read.

    Attributes:
        target: ``distance`` between words, or their ``depth``.
        rank: Of the linear map.
        metric: What models are selected on: ``uuas`` (distance), ``root_accuracy`` (depth), or
            ``spearman``; the first that fits when left out.
        shortest, longest: Words of the sentences that ``spearman`` averages over; the second is no
            less than the first.
    """

    name: str = "structural_probe.v1"
    target: Literal["distance", "depth"] = "distance"
    rank: int = 128
    metric: Literal["uuas", "root_accuracy", "spearman"] | None = None
    shortest: int = 5
    longest: int = 50

    def __post_init__(self) -> None:
        check_positive("task.rank", self.rank)
        check_positive("task.shortest", self.shortest)
        check_range("task.longest", self.longest, self.shortest)
        if self.metric is not None and self.metric not in METRICS[self.target]:
            raise SpecError(
                f"task.metric is {self.metric!r}; a probe of {self.target} has "
                f"{' and '.join(METRICS[self.target])}"
            )

    @property
    def headline(self) -> str:
        """The metric that models are selected on."""
        return self.metric or METRICS[self.target][0]


TASK_OPTIONS.add("structural_probe.v1", StructuralProbeOptions)
