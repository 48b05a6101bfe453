"""Scores of single-label classification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.metrics.base import NamedScores, share


@dataclass(frozen=True, slots=True)
class ClassScores:
    """Scores of one class; 0 where undefined. ``support`` counts its examples."""

    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True, slots=True)
class ClassificationScores(NamedScores):
    """Scores of single-label classification.

    Attributes:
        examples: Examples with a label; the others are not scored.
        accuracy: Share of them predicted right.
        loss: Mean cross-entropy, without auxiliary losses.
        macro_f1: Mean of the classes' F1.
        mcc: Matthews' correlation coefficient.
        per_class: Scores by class name.
        confusion: Counts, rows gold and columns predicted, in the order of ``per_class``.
        metric: Name of the headline.
    """

    examples: int
    accuracy: float
    loss: float
    macro_f1: float
    mcc: float
    per_class: dict[str, ClassScores]
    confusion: list[list[int]]
    metric: str = "accuracy"


def classification_scores(
    gold: NDArray[np.int64],
    predicted: NDArray[np.int64],
    loss: float,
    names: Sequence[str],
    metric: str = "accuracy",
) -> ClassificationScores:
    """Score predicted class ids against gold ones; negative gold ids are left out.

    >>> scores = classification_scores(np.array([0, 1, 1]), np.array([0, 1, 0]), 0.5, ["no", "yes"])
    >>> round(scores.accuracy, 2), scores.confusion
    (0.67, [[1, 0], [1, 1]])
    """
    labelled = gold >= 0
    gold, predicted = gold[labelled], predicted[labelled]
    confusion = np.zeros((len(names), len(names)), np.int64)
    np.add.at(confusion, (gold, predicted), 1)
    per_class = {name: _class_scores(confusion, index) for index, name in enumerate(names)}
    return ClassificationScores(
        examples=len(gold),
        accuracy=share(int(np.trace(confusion)), len(gold)),
        loss=loss,
        macro_f1=float(np.mean([scores.f1 for scores in per_class.values()])),
        mcc=matthews(confusion),
        per_class=per_class,
        confusion=confusion.tolist(),
        metric=metric,
    )


def matthews(confusion: NDArray[np.int64]) -> float:
    """Matthews' correlation coefficient for any number of classes; 0 where undefined.

    Gorodkin 2004, "Comparing two K-category assignments by a K-category correlation coefficient".

    >>> round(matthews(np.array([[3, 1], [1, 3]])), 3)
    0.5
    """
    gold, predicted = confusion.sum(1).astype(float), confusion.sum(0).astype(float)
    total, right = float(confusion.sum()), float(np.trace(confusion))
    spread = (total**2 - predicted @ predicted) * (total**2 - gold @ gold)
    return share(right * total - float(gold @ predicted), float(np.sqrt(spread)))


def _class_scores(confusion: NDArray[np.int64], index: int) -> ClassScores:
    right = int(confusion[index, index])
    precision = share(right, int(confusion[:, index].sum()))
    support = int(confusion[index].sum())
    recall = share(right, support)
    return ClassScores(
        precision, recall, share(2 * precision * recall, precision + recall), support
    )
