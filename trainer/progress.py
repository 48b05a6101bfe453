"""How far a run has come: what it reports, and what a checkpoint must remember of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Report:
    """What observers are told every few steps.

    Attributes:
        step, total_steps: Optimizer steps done, and planned.
        losses: Means since the last report: ``loss``, what was minimised; ``task``; and each
            auxiliary loss by name, unweighted.
        learning_rate: Of the last step.
        examples: Examples seen so far by all processes.
        seconds: Time in steps so far: neither evaluation nor checkpoints.
        waited: Of it, time spent waiting for data.
    """

    step: int
    total_steps: int
    losses: dict[str, float]
    learning_rate: float
    examples: int
    seconds: float
    waited: float

    @property
    def examples_per_second(self) -> float:
        """Over the run so far."""
        return self.examples / self.seconds if self.seconds else 0.0

    @property
    def data_share(self) -> float:
        """Share of the time spent waiting for data."""
        return self.waited / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores on the dev set after some step, as plain JSON; the headline is that of ``metric``."""

    step: int
    metric: str
    headline: float
    scores: dict[str, Any]


Observer: TypeAlias = Callable[[Report | Evaluation], None]
"""Told of reports and evaluations as they happen, on the main process."""


@dataclass(slots=True)
class Progress:
    """Position and history of a run.

    Attributes:
        epoch: Passes completed.
        step: Optimizer steps done.
        examples, seconds, waited: As in `Report`.
        losses: Training loss of every step.
        evaluations: On the dev set, in order.
        resumed: The ``step`` of each resumption, and what ``changed``: options and number of
            processes, each as what it was and what it is now.
    """

    epoch: int = 0
    step: int = 0
    examples: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    losses: list[float] = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)
    resumed: list[dict[str, Any]] = field(default_factory=list)

    def to_state(self) -> dict[str, Any]:
        """Plain values for a checkpoint."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Progress:
        """What `to_state` gave."""
        evaluations = [Evaluation(**evaluation) for evaluation in state["evaluations"]]
        return cls(**{**state, "evaluations": evaluations})

    @property
    def best(self) -> Evaluation | None:
        """The evaluation with the highest headline metric, the earliest of equals."""
        return max(self.evaluations, key=lambda evaluation: evaluation.headline, default=None)

    @property
    def evaluations_since_best(self) -> int:
        """How many evaluations in a row were no better than the best one."""
        best = self.best
        return 0 if best is None else len(self.evaluations) - 1 - self.evaluations.index(best)


class Losses:
    """Losses that stay on the device until somebody asks: reading one makes the host wait."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._rows: list[Tensor] = []

    def add(self, outputs: Sequence[Any]) -> None:
        """Take the outputs of one step's batches (`trainer.models.outputs`)."""
        each = [
            {
                "loss": output.loss,
                **({} if output.task_loss is None else {"task": output.task_loss}),
                **(output.objectives or {}),
            }
            for output in outputs
        ]
        self._names = tuple(each[0])
        rows = [torch.stack([part.detach().float() for part in losses.values()]) for losses in each]
        self._rows.append(torch.stack(rows).mean(0))

    def read(self, reduce: Callable[[Tensor], Tensor]) -> tuple[list[float], dict[str, float]]:
        """Loss of every step since the last call, and the means of all parts.

        Args:
            reduce: Averages a tensor over processes.
        """
        table = reduce(torch.stack(self._rows))
        self._rows = []
        means = dict(zip(self._names, table.mean(0).tolist(), strict=True))
        return table[:, 0].tolist(), means
