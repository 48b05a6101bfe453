"""Learning trees alone: what a graph encoder is trained with before a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics.base import NamedScores
from trainer.options import TaskOptions
from trainer.tasks.base import Arrays
from trainer.tasks.losses import MeanLoss

if TYPE_CHECKING:
    from featurestore import FeatureDataset


@dataclass(frozen=True, slots=True)
class TreesScores(NamedScores):
    """Mean losses over examples; the headline is their negated sum, as higher is to be better."""

    examples: int
    structure: float
    loss: float
    objectives: dict[str, float]

    metric = "structure"


class TreesScorer:
    """Collects the auxiliary losses, batch by batch."""

    def __init__(self) -> None:
        self._examples = 0
        self._losses: dict[str, MeanLoss] = {}

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        """Take a model's output on one batch."""
        self._examples += len(batch)
        for name, loss in output.objectives.items():
            self._losses.setdefault(name, MeanLoss()).add(loss, torch.tensor(len(batch)))

    def scores(self) -> TreesScores:
        """The scores of everything taken."""
        means = {name: loss.mean() for name, loss in self._losses.items()}
        total = sum(means.values())
        return TreesScores(self._examples, -total, total, means)

    def predictions(self) -> list[Prediction]:
        """None: nothing is predicted."""
        return []


class Trees:
    """No labels: the trees themselves are learned.

    Args:
        options: None but the name.
        labels: None.
    """

    metric = "structure"
    stream_options: ClassVar[Mapping[str, Any]] = {}
    extras: ClassVar[tuple[str, ...]] = ()

    def __init__(self, options: TaskOptions, labels: Mapping[str, LabelSpec]) -> None:
        del options, labels

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:  # noqa: ARG002
        """Nothing."""
        return {}

    def scorer(self, data: FeatureDataset) -> TreesScorer:  # noqa: ARG002
        """A new scorer."""
        return TreesScorer()
