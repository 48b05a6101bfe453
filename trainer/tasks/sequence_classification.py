"""One class per example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics.base import NamedScores
from trainer.options import SequenceClassificationOptions, TaskOptions
from trainer.tasks.base import Arrays
from trainer.tasks.classes import ClassOutputs, check_classes

if TYPE_CHECKING:
    from featurestore import FeatureDataset


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
        accuracy=_ratio(int(np.trace(confusion)), len(gold)),
        loss=loss,
        macro_f1=float(np.mean([scores.f1 for scores in per_class.values()])),
        mcc=matthews(confusion),
        per_class=per_class,
        confusion=confusion.tolist(),
        metric=metric,
    )


class ClassificationScorer:
    """Collects predictions, batch by batch.

    Args:
        label: The label column.
        metric: What is to be the headline.
    """

    def __init__(self, label: LabelSpec, metric: str = "accuracy") -> None:
        self._label, self._metric = label, metric
        self._outputs = ClassOutputs(label)

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        """Take a model's output on one batch."""
        self.take(output, batch.labels[self._label.name], batch.example_ids)

    def take(self, output: Any, gold_B: Tensor, ids: Sequence[str]) -> None:
        """Take a model's output on examples of which these are the classes and names."""
        self._outputs.take(output, gold_B, ids)

    def scores(self) -> ClassificationScores:
        """The scores of everything taken."""
        found = self._outputs
        return classification_scores(
            found.gold(), found.predicted(), found.loss(), self._label.names, self._metric
        )

    def predictions(self) -> list[Prediction]:
        """The class of each example; see `Scorer`."""
        names = self._label.names
        return [
            Prediction(
                example_id,
                gold=names[gold] if gold >= 0 else None,
                predicted=names[predicted],
                right=predicted == gold if gold >= 0 else None,
                shares={"accuracy": (float(predicted == gold), 1.0)} if gold >= 0 else {},
                probability=probability,
            )
            for example_id, gold, predicted, probability in self._outputs.rows()
        ]


class SequenceClassification:
    """Single-label classification of whole examples.

    Args:
        options: The label column and the headline metric.
        labels: That column.

    Raises:
        SpecError: The label is a number or free text, or has fewer than two classes.
    """

    stream_options: ClassVar[Mapping[str, Any]] = {}
    extras: ClassVar[tuple[str, ...]] = ()

    def __init__(self, options: TaskOptions, labels: Mapping[str, LabelSpec]) -> None:
        assert isinstance(options, SequenceClassificationOptions)
        self.metric: str = options.metric
        self._label = labels[options.label]
        check_classes(self._label, "sequence classification")

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """The class ids. *Shape:* (B,), int64; -1 without a label."""
        return {self._label.name: arrays[self._label.name]}

    def scorer(self, data: FeatureDataset) -> ClassificationScorer:  # noqa: ARG002
        """A new scorer."""
        return ClassificationScorer(self._label, self.metric)


def matthews(confusion: NDArray[np.int64]) -> float:
    """Matthews' correlation coefficient for any number of classes; 0 where undefined.

    Gorodkin 2004, "Comparing two K-category assignments by a K-category correlation coefficient".

    >>> round(matthews(np.array([[3, 1], [1, 3]])), 3)
    0.5
    """
    gold, predicted = confusion.sum(1).astype(float), confusion.sum(0).astype(float)
    total, right = float(confusion.sum()), float(np.trace(confusion))
    spread = (total**2 - predicted @ predicted) * (total**2 - gold @ gold)
    return _ratio(right * total - float(gold @ predicted), float(np.sqrt(spread)))


def _class_scores(confusion: NDArray[np.int64], index: int) -> ClassScores:
    right = int(confusion[index, index])
    precision = _ratio(right, int(confusion[:, index].sum()))
    support = int(confusion[index].sum())
    recall = _ratio(right, support)
    return ClassScores(
        precision, recall, _ratio(2 * precision * recall, precision + recall), support
    )


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
