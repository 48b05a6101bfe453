"""``trees.v1``: learning trees alone, as a graph encoder does before it meets a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics import NamedScores
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.tasks.base import Head, MeanLoss, Task

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig


class Trees(Task):
    """No labels: the model learns the trees themselves."""

    metric = "structure"

    def scorer(self, data: FeatureDataset) -> TreesScorer:  # noqa: ARG002
        return TreesScorer()


class TreesHead(Head):
    """Neither logits nor a loss: the weighted objectives are the loss."""

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        use_syntax = config.model_options().use_syntax
        if not any(one.is_active(use_syntax) for one in config.objective_options()):
            raise SpecError(
                f"the recipe has no objectives that {config.model['name']} learns, and trees.v1 "
                "learns nothing else; give some with a weight, such as "
                "objectives.tree_distance.weight=1"
            )

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:  # noqa: ARG002
        return HeadOutput({}, None)


@dataclass(frozen=True, slots=True)
class TreesScores(NamedScores):
    """Mean losses over examples; the headline is their negated sum, so that higher is better."""

    examples: int
    structure: float
    loss: float
    objectives: dict[str, float]

    metric = "structure"


class TreesScorer:
    """Collects the losses, batch by batch."""

    def __init__(self) -> None:
        self._examples = 0
        self._losses: dict[str, MeanLoss] = {}

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        self._examples += len(batch)
        for name, loss in output.objectives.items():
            self._losses.setdefault(name, MeanLoss()).add(loss, torch.tensor(len(batch)))

    def scores(self) -> TreesScores:
        means = {name: loss.mean() for name, loss in self._losses.items()}
        total = sum(means.values())
        return TreesScores(self._examples, -total, total, means)

    def predictions(self) -> list[Prediction]:
        return []
