"""One class for each of some examples: what the tasks that choose one share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from syntax.errors import SpecError
from syntax.examples import LabelSpec
from trainer.tasks.base import Baseline, MeanLoss

if TYPE_CHECKING:
    from featurestore import FeatureDataset

ClassIds = NDArray[np.int64]

NO_LABEL: Final = -1
"""The class id of an example without a label; such examples take no part in the loss."""


def check_classes(label: LabelSpec, task: str) -> None:
    if label.kind != "class" or len(label.names) < 2:
        raise SpecError(
            f"the label {label.name!r} is of kind {label.kind!r} with {len(label.names)} "
            f"classes; {task} needs a class label of at least two"
        )


def class_ids(data: FeatureDataset, label: LabelSpec) -> ClassIds:
    """The stored class of each example; `NO_LABEL` without one. *Shape:* (examples,)."""
    ids = {name: at for at, name in enumerate(label.names)}
    values = data.columns([label.name])[label.name].to_pylist()
    return np.array([ids.get(value, NO_LABEL) for value in values], np.int64)


def majority_class(train: FeatureDataset, label: LabelSpec) -> int:
    """The class that most examples have, the first of equally frequent ones."""
    counts = Counter(class_ids(train, label).tolist())
    return max(range(len(label.names)), key=lambda one: (counts[one], -one))


def majority_baseline(
    train: FeatureDataset, label: LabelSpec, score: Callable[[ClassIds, ClassIds], float]
) -> Baseline:
    """The baseline of the majority class; ``score`` maps gold and predicted ids to the headline."""
    majority = majority_class(train, label)

    def score_of(data: FeatureDataset) -> float:
        gold = class_ids(data, label)
        return score(gold, np.full_like(gold, majority))

    return Baseline("majority class", score_of)


class ClassifierOfFirst(nn.Module):
    """[CLS] state, dropout, linear, tanh, dropout, linear; not the pooler that came with BERT.

    Ahmad et al. (2021), as released; the paper does not say. With ``pooler``, the first dropout is
    left out and the first linear map is the pretrained one, as in BERT's own classifier.
    """

    def __init__(self, width: int, classes: int, dropout: float, *, pooler: bool = False) -> None:
        super().__init__()
        self.pooler = pooler
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(width, width)
        self.output = nn.Linear(width, classes)

    def forward(self, states_BLD: Tensor) -> Tensor:
        """Logits, one row per sequence. *Shape:* (B, classes), float32."""
        first_BD = states_BLD[:, 0] if self.pooler else self.dropout(states_BLD[:, 0])
        pooled_BD = torch.tanh(self.dense(first_BD))
        logits_BC: Tensor = self.output(self.dropout(pooled_BD)).float()
        return logits_BC

    def load_pooler(self, dense: nn.Linear) -> None:
        if dense.weight.shape != self.dense.weight.shape:
            raise SpecError(
                f"the pretrained pooler reads states of {dense.in_features} numbers, and the "
                f"model's have {self.dense.in_features}; set task.pooler=false"
            )
        self.dense.load_state_dict(dense.state_dict())


class ClassOutputs:
    """The classes that a model gives to examples; kept on its device, and read once, at the end."""

    def __init__(self, label: LabelSpec) -> None:
        self._name = label.name
        self._gold: list[Tensor] = []
        self._predicted: list[Tensor] = []
        self._probabilities: list[Tensor] = []
        self._ids: list[str] = []
        self._loss = MeanLoss()

    def take(self, output: Any, gold_B: Tensor, ids: Sequence[str]) -> None:
        best = output.logits[self._name].softmax(-1).max(-1)
        self._gold.append(gold_B)
        self._predicted.append(best.indices)
        self._probabilities.append(best.values)
        self._ids += ids
        self._loss.add(output.task_loss, (gold_B >= 0).sum())

    def gold(self) -> NDArray[np.int64]:
        """Class ids, negative without a label. *Shape:* (examples,)."""
        return _together(self._gold)

    def predicted(self) -> NDArray[np.int64]:
        return _together(self._predicted)

    def loss(self) -> float:
        return self._loss.mean()

    def rows(self) -> Iterator[tuple[str, int, int, float]]:
        """Name, gold and predicted class, and the latter's probability, of each example."""
        columns = (self.gold(), self.predicted(), _together(self._probabilities))
        return zip(self._ids, *(column.tolist() for column in columns), strict=True)


def _together(tensors: Sequence[Tensor]) -> NDArray[Any]:
    arrays = [tensor.cpu().numpy() for tensor in tensors]
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)
