"""Scores of single-label classification, and the registry of metrics of classes.

A metric of classes is a function of sums of `class_counts`, so that scores, the choice of
checkpoints, and resampling in tests of significance compute the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.registry import Registry
from trainer.metrics import NamedScores, share
from trainer.metrics.significance import Floats, Metric, ratio

CLASS_METRICS: Final[Registry[Metric]] = Registry("class metric")
"""From sums of `class_counts`, (..., 3 * classes), to (...)."""


def accuracy(sums: Floats) -> Floats:
    right, gold, _ = _by_class(sums)
    return ratio(np.stack([right.sum(-1), gold.sum(-1)], -1))


def macro_f1(sums: Floats) -> Floats:
    """Mean F1 of classes; 0 where undefined."""
    right, gold, predicted = _by_class(sums)
    mean: Floats = ratio(np.stack([2 * right, gold + predicted], -1)).mean(-1)
    return mean


def mcc(sums: Floats) -> Floats:
    """Matthews' correlation coefficient (Gorodkin 2004)."""
    right, gold, predicted = _by_class(sums)
    total = gold.sum(-1)
    spread = (total**2 - (predicted**2).sum(-1)) * (total**2 - (gold**2).sum(-1))
    above = right.sum(-1) * total - (gold * predicted).sum(-1)
    return ratio(np.stack([above, np.sqrt(spread)], -1))


def class_counts(gold: NDArray[np.int64], predicted: NDArray[np.int64], classes: int) -> Floats:
    """Counts that each example adds: of each class whether it was right, was gold, was predicted.

    *Shape:* (N, ...) to (N, ..., 3 * classes).
    """
    every = np.eye(classes)
    ours, theirs = every[gold], every[predicted]
    return np.concatenate([ours * theirs, ours, theirs], -1)


def _by_class(sums: Floats) -> tuple[Floats, Floats, Floats]:
    right, gold, predicted = np.split(sums, 3, -1)
    return right, gold, predicted


CLASS_METRICS.add("accuracy", accuracy)
CLASS_METRICS.add("macro_f1", macro_f1)
CLASS_METRICS.add("mcc", mcc)


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
        loss: Mean cross-entropy, without auxiliary losses.
        confusion: Counts, rows gold and columns predicted, in the order of ``per_class``.
    """

    examples: int
    loss: float
    metrics: dict[str, float]
    per_class: dict[str, ClassScores]
    confusion: list[list[int]]
    metric: str = "accuracy"

    @property
    def headline(self) -> float:
        return self.metrics[self.metric]

    def to_json(self) -> dict[str, Any]:
        """Every number by name; those of ``metrics`` stand beside the others."""
        content = NamedScores.to_json(self)
        return {**content.pop("metrics"), **content}


def classification_scores(
    gold: NDArray[np.int64],
    predicted: NDArray[np.int64],
    loss: float,
    names: Sequence[str],
    metric: str = "accuracy",
) -> ClassificationScores:
    """Score predicted class ids against gold ones; negative gold ids are left out.

    >>> scores = classification_scores(np.array([0, 1, 1]), np.array([0, 1, 0]), 0.5, ["no", "yes"])
    >>> round(scores.headline, 2), scores.confusion
    (0.67, [[1, 0], [1, 1]])
    """
    labelled = gold >= 0
    gold, predicted = gold[labelled], predicted[labelled]
    confusion = np.zeros((len(names), len(names)), np.int64)
    np.add.at(confusion, (gold, predicted), 1)
    sums = np.concatenate([np.diag(confusion), confusion.sum(1), confusion.sum(0)]).astype(float)
    return ClassificationScores(
        examples=len(gold),
        loss=loss,
        metrics={name: float(of(sums)) for name, of in CLASS_METRICS.items()},
        per_class={name: _class_scores(confusion, index) for index, name in enumerate(names)},
        confusion=confusion.tolist(),
        metric=metric,
    )


def _class_scores(confusion: NDArray[np.int64], index: int) -> ClassScores:
    right = int(confusion[index, index])
    precision = share(right, int(confusion[:, index].sum()))
    support = int(confusion[index].sum())
    recall = share(right, support)
    return ClassScores(
        precision, recall, share(2 * precision * recall, precision + recall), support
    )
