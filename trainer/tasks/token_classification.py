"""One class for each token, such as named entities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from syntax.batches import IGNORE
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics.base import NamedScores
from trainer.metrics.entities import (
    Reader,
    SpanScores,
    entities,
    entity_scores,
    tokens_tagged,
)
from trainer.options import TaskOptions, TokenClassificationOptions
from trainer.tasks.base import Arrays
from trainer.tasks.losses import MeanLoss
from trainer.tasks.tokens import STREAM_OPTIONS, TokenTags, example_ids

Pairs = Sequence[tuple[Sequence[str], Sequence[str]]]
"""Gold and predicted tags of each example."""

if TYPE_CHECKING:
    from featurestore import FeatureDataset


@dataclass(frozen=True, slots=True)
class TaggingScores(NamedScores):
    """Scores of tagged tokens.

    Attributes:
        examples: Examples with tags; the others are not scored.
        precision, recall, f1, f05: Of entities, over all types; or of the tokens of one tag.
        accuracy: Share of tokens with the right tag.
        loss: Mean cross-entropy of labelled pieces, without auxiliary losses.
        per_type: Scores by type of entity.
        metric: Name of the headline.
    """

    examples: int
    precision: float
    recall: float
    f1: float
    f05: float
    accuracy: float
    loss: float
    per_type: dict[str, SpanScores]
    metric: str = "f1"


def tagging_scores(
    pairs: Pairs, loss: float, metric: str = "f1", read: Reader = entities
) -> TaggingScores:
    """Score predicted tags against gold ones; ``read`` says what counts as an entity.

    >>> scores = tagging_scores([(["B-PER", "O"], ["B-PER", "B-LOC"])], 0.5)
    >>> round(scores.f1, 2), scores.accuracy
    (0.67, 0.5)
    """
    gold, predicted = (gold for gold, _ in pairs), (predicted for _, predicted in pairs)
    per_type = entity_scores(gold, predicted, read)
    every = per_type.pop("")
    return TaggingScores(
        examples=len(pairs),
        precision=every.precision,
        recall=every.recall,
        f1=every.f1,
        f05=every.f05,
        accuracy=_accuracy(pairs),
        loss=loss,
        per_type=per_type,
        metric=metric,
    )


class TaggingScorer:
    """Collects tags of tokens, batch by batch.

    Args:
        tags: The label column.
        metric: What is to be the headline.
        read: What counts as an entity.
    """

    def __init__(self, tags: TokenTags, metric: str = "f1", read: Reader = entities) -> None:
        self._tags, self._metric, self._read = tags, metric, read
        self._ids: list[str] = []
        self._pairs: list[tuple[list[str], list[str]]] = []
        self._loss = MeanLoss()

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        """Take a model's output on one batch."""
        name = self._tags.label.name
        predicted_BL = output.logits[name].argmax(-1).cpu().numpy()
        self._ids += example_ids(batch.arrays)
        self._pairs += self._tags.pairs(batch.arrays, predicted_BL)
        self._loss.add(output.task_loss, (batch.labels[name] != IGNORE).sum())

    def scores(self) -> TaggingScores:
        """The scores of everything taken."""
        tagged = [pair for pair in self._pairs if pair[0]]
        return tagging_scores(tagged, self._loss.mean(), self._metric, self._read)

    def predictions(self) -> list[Prediction]:
        """The tags of each example; see `Scorer`."""
        return [
            _prediction(example_id, gold, predicted, self._read)
            for example_id, (gold, predicted) in zip(self._ids, self._pairs, strict=True)
        ]


class TokenClassification:
    """Tagging of the tokens of the first segment.

    Args:
        options: The label column, where the model predicts, and the headline metric.
        labels: That column.

    Raises:
        SpecError: The label is not of kind ``tags``, has fewer than two names, or not the one that
            scores are to be of; entities are to be scored, and its tags spell none.
    """

    stream_options: ClassVar[Mapping[str, Any]] = STREAM_OPTIONS
    extras: ClassVar[tuple[str, ...]] = ()

    def __init__(self, options: TaskOptions, labels: Mapping[str, LabelSpec]) -> None:
        assert isinstance(options, TokenClassificationOptions)
        self.metric: str = options.metric
        self._tags = TokenTags(labels[options.label], options.pieces, options.word_labels)
        self._read = _reader(options, self._tags.label)

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """The labels of pieces. *Shape:* (B, L), int64."""
        return {self._tags.label.name: self._tags.targets(arrays)}

    def scorer(self, data: FeatureDataset) -> TaggingScorer:  # noqa: ARG002
        """A new scorer."""
        return TaggingScorer(self._tags, self.metric, self._read)


def tagging_shares(
    gold: Sequence[str], predicted: Sequence[str], read: Reader = entities
) -> dict[str, tuple[float, float]]:
    """What an example adds to F1, F0.5, precision and recall of entities, and to accuracy.

    >>> tagging_shares(["B-PER", "O"], ["B-PER", "B-LOC"])["f1"]
    (2.0, 3.0)
    """
    expected, found = set(read(gold)), set(read(predicted))
    hits, right = float(len(expected & found)), _equal(gold, predicted)
    return {
        "f1": (2 * hits, float(len(expected) + len(found))),
        "f05": (1.25 * hits, len(found) + 0.25 * len(expected)),
        "precision": (hits, float(len(found))),
        "recall": (hits, float(len(expected))),
        "accuracy": (float(right), float(len(gold))),
    }


def _prediction(
    example_id: str, gold: Sequence[str], predicted: Sequence[str], read: Reader
) -> Prediction:
    if not gold:
        return Prediction(example_id, None, predicted)
    shares = tagging_shares(gold, predicted, read)
    return Prediction(example_id, gold, predicted, list(gold) == list(predicted), shares)


def _reader(options: TokenClassificationOptions, label: LabelSpec) -> Reader:
    positive = options.positive
    if positive is None:
        if options.metric != "accuracy" and "O" not in label.names:
            raise SpecError(
                f"task.metric is {options.metric}, of entities, and the tags of {label.name!r} "
                f"spell none: {', '.join(label.names)}; set task.positive to the tag that is to be "
                "found, or task.metric=accuracy"
            )
        return entities
    if positive not in label.names:
        raise SpecError(
            f"task.positive is {positive!r}; the label {label.name!r} has the tags "
            f"{', '.join(label.names)}"
        )
    return tokens_tagged(positive)


def _accuracy(pairs: Pairs) -> float:
    tokens = sum(len(gold) for gold, _ in pairs)
    return sum(_equal(*pair) for pair in pairs) / tokens if tokens else 0.0


def _equal(gold: Sequence[str], predicted: Sequence[str]) -> int:
    return sum(one == other for one, other in zip(gold, predicted, strict=True))
