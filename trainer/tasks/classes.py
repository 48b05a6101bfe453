"""One class for each of some examples: what the tasks that choose one share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from syntax.errors import SpecError
from syntax.examples import LabelSpec
from trainer.tasks.losses import MeanLoss


def check_classes(label: LabelSpec, task: str) -> None:
    """Refuse a label column that is not one of classes.

    Raises:
        SpecError: It is a number or free text, or has fewer than two classes.
    """
    if label.kind != "class" or len(label.names) < 2:
        raise SpecError(
            f"the label {label.name!r} is of kind {label.kind!r} with {len(label.names)} "
            f"classes; {task} needs a class label of at least two"
        )


class ClassOutputs:
    """The classes that a model gives to examples; kept on its device, and read once, at the end.

    Args:
        label: The label column.
    """

    def __init__(self, label: LabelSpec) -> None:
        self._name = label.name
        self._gold: list[Tensor] = []
        self._predicted: list[Tensor] = []
        self._probabilities: list[Tensor] = []
        self._ids: list[str] = []
        self._loss = MeanLoss()

    def take(self, output: Any, gold_B: Tensor, ids: Sequence[str]) -> None:
        """Take a model's output on examples of which these are the classes and names."""
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
        """Class ids. *Shape:* (examples,)."""
        return _together(self._predicted)

    def loss(self) -> float:
        """Mean loss over the examples with a label."""
        return self._loss.mean()

    def rows(self) -> Iterator[tuple[str, int, int, float]]:
        """Name, gold and predicted class, and what the model gives to that one, of each example."""
        columns = (self.gold(), self.predicted(), _together(self._probabilities))
        return zip(self._ids, *(column.tolist() for column in columns), strict=True)


def _together(tensors: Sequence[Tensor]) -> NDArray[Any]:
    arrays = [tensor.cpu().numpy() for tensor in tensors]
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)
