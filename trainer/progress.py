"""Progress of a run: its reports, and what a checkpoint must remember of it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from syntax.registry import unknown_name
from trainer.masking import POSITIONS
from trainer.options import MAIN
from trainer.outcomes import counted_outcomes


@dataclass(frozen=True, slots=True)
class Report:
    """Report to observers, every few steps.

    Attributes:
        losses: Means since the last report: ``loss``, what was minimised; ``task``; and each
            objective by name, unweighted; of further streams as ``gold/loss``.
        learning_rate: Of the last step, of the first optimizer.
        examples: Seen so far by all processes.
        seconds: Time in steps so far: neither evaluation nor checkpoints; ``waited`` is part of it.
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
        return self.examples / self.seconds if self.seconds else 0.0

    @property
    def data_share(self) -> float:
        """Share of the time spent waiting for data."""
        return self.waited / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores on dev after some step, as plain JSON; further streams' are under ``streams``."""

    step: int
    metric: str
    headline: float
    scores: dict[str, Any]

    def score(self, metric: str) -> float:
        value = self.scores.get(metric)
        if not isinstance(value, int | float):
            known = [name for name, of in self.scores.items() if isinstance(of, int | float)]
            raise unknown_name("score of dev (training.restart_metric)", metric, known)
        return value


Observer: TypeAlias = Callable[[Report | Evaluation], None]
"""Called with reports and evaluations as they happen, on the main process."""


def height(evaluation: Evaluation, tie_metric: str | None) -> tuple[float, float]:
    """Rank of an evaluation: the headline, NaN the lowest, then another score."""
    headline = evaluation.headline
    tie = 0.0 if tie_metric is None else evaluation.score(tie_metric)
    return -math.inf if math.isnan(headline) else headline, tie


@dataclass(slots=True)
class Progress:
    """Position and history of a run.

    Attributes:
        tie_metric: Decides between two evaluations with one headline (`TrainingOptions`).
        outcomes: Counts of what a run goes on after (`outcomes_of`) and of ``loss_not_finite``.
        fed: Steps that each stream fed, by name.
        resumed: The ``step`` of each resumption, and what ``changed``, as it was and as it is.
    """

    tie_metric: str | None = None
    epoch: int = 0
    step: int = 0
    examples: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    losses: list[float] = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)
    outcomes: dict[str, int] = field(default_factory=dict)
    fed: dict[str, int] = field(default_factory=dict)
    resumed: list[dict[str, Any]] = field(default_factory=list)

    def take(self, losses: Sequence[float]) -> None:
        self.losses += losses
        self.count({"loss_not_finite": sum(not math.isfinite(loss) for loss in losses)})

    def count(self, outcomes: Mapping[str, int]) -> None:
        """Add to ``outcomes``; the main process counts its own batches."""
        for name, times in outcomes.items():
            if times:
                self.outcomes[name] = self.outcomes.get(name, 0) + times

    def count_fed(self, streams: Iterable[str]) -> None:
        for name in streams:
            self.fed[name] = self.fed.get(name, 0) + 1

    def to_state(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any], tie_metric: str | None = None) -> Progress:
        evaluations = [Evaluation(**evaluation) for evaluation in state["evaluations"]]
        return cls(**{**state, "evaluations": evaluations, "tie_metric": tie_metric})

    @property
    def best(self) -> Evaluation | None:
        """The highest evaluation (`height`), the earliest of equals."""
        return max(self.evaluations, key=lambda one: height(one, self.tie_metric), default=None)

    def kept(self, which: Literal["best", "last", "lowest_loss"]) -> Evaluation | None:
        if which == "last":
            return next(reversed(self.evaluations), None)
        return self.best if which == "best" else min(self.evaluations, key=_loss, default=None)

    @property
    def evaluations_since_best(self) -> int:
        best = self.best
        return 0 if best is None else len(self.evaluations) - 1 - self.evaluations.index(best)


def _loss(evaluation: Evaluation) -> float:
    loss = float(evaluation.scores["loss"])
    return math.inf if math.isnan(loss) else loss


def outcomes_of(arrays: Mapping[str, Any]) -> dict[str, int]:
    """Counts of what a batch has nothing of to learn from.

    ``batch_without_masked_piece``: 1 where nothing could be masked, as in a batch of empty texts.
    ``example_without_phrase_samples``, ``example_without_tree_samples``: examples of which a
    sampler draws none. ``sentence_too_long``: sentences of which truncation cut something, so that
    no tree is learned of them. And the counts of objectives (`trainer.outcomes`).
    """
    masked = arrays.get(POSITIONS)
    found = {"batch_without_masked_piece": int(masked is not None and not len(masked))}
    if (layout := arrays.get("word_layout")) is not None:
        begins = layout.first == np.arange(layout.first.shape[1])
        cut = begins & ~layout.whole & (layout.words >= 0)
        found["sentence_too_long"] = int(cut.sum())
    for kind in ("phrase", "tree"):
        if (offsets := arrays.get(f"{kind}_offsets")) is not None:
            found[f"example_without_{kind}_samples"] = int((np.diff(offsets) == 0).sum())
    return {**found, **counted_outcomes(arrays)}


class Losses:
    """Losses that stay on the device until they are read: reading one makes the host wait."""

    def __init__(self) -> None:
        self._steps: list[dict[str, tuple[tuple[str, ...], Tensor]]] = []

    def add(self, outputs: Mapping[str, Sequence[Any]]) -> None:
        self._steps.append({name: _means(of) for name, of in outputs.items()})

    def read(self, reduce: Callable[[Tensor], Tensor]) -> tuple[list[float], dict[str, float]]:
        """Loss of every step since the last call, and the means of all parts over processes.

        The loss of a step is the sum over the streams that fed it. Parts are ``loss`` and, of the
        main stream, ``task`` and each objective; of others all of these, as ``gold/loss``.
        """
        rows = [values for step in self._steps for _, values in step.values()]
        numbers = iter(reduce(torch.cat(rows)).tolist())
        losses, parts = [], defaultdict[str, list[float]](list)
        for step in self._steps:
            losses.append(0.0)
            for stream, (names, _) in step.items():
                for name in names:
                    number = next(numbers)
                    if name == "loss":
                        losses[-1] += number
                    if stream != MAIN:
                        parts[f"{stream}/{name}"].append(number)
                    elif name != "loss":
                        parts[name].append(number)
        self._steps = []
        return losses, {"loss": fmean(losses), **{name: fmean(of) for name, of in parts.items()}}


def _means(outputs: Sequence[Any]) -> tuple[tuple[str, ...], Tensor]:
    each = [
        {
            "loss": output.loss,
            **({} if output.task_loss is None else {"task": output.task_loss}),
            **(output.objectives or {}),
        }
        for output in outputs
    ]
    rows = [torch.stack([part.detach().float() for part in losses.values()]) for losses in each]
    return tuple(each[0]), torch.stack(rows).mean(0)
