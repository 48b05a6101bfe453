"""Scores of tagged tokens: of the entities that tags spell, and of the tags themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.metrics import NamedScores, share
from trainer.metrics.entities import Reader, SpanScores, entities, entity_scores

Pairs = Sequence[tuple[Sequence[str], Sequence[str]]]


@dataclass(frozen=True, slots=True)
class TaggingScores(NamedScores):
    """Scores of tagged tokens; F1 and its parts are of entities, or of the tokens of one tag."""

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
    right = sum(equal_tags(*pair) for pair in pairs)
    tokens = sum(len(gold) for gold, _ in pairs)
    return TaggingScores(
        examples=len(pairs),
        precision=every.precision,
        recall=every.recall,
        f1=every.f1,
        f05=every.f05,
        accuracy=share(right, tokens),
        loss=loss,
        per_type=per_type,
        metric=metric,
    )


def tagging_shares(
    gold: Sequence[str], predicted: Sequence[str], read: Reader = entities
) -> dict[str, tuple[float, float]]:
    """Shares of an example in F1, F0.5, precision and recall of entities, and to accuracy.

    >>> tagging_shares(["B-PER", "O"], ["B-PER", "B-LOC"])["f1"]
    (2.0, 3.0)
    """
    expected, found = set(read(gold)), set(read(predicted))
    hits, right = float(len(expected & found)), equal_tags(gold, predicted)
    return {
        "f1": (2 * hits, float(len(expected) + len(found))),
        "f05": (1.25 * hits, len(found) + 0.25 * len(expected)),
        "precision": (hits, float(len(found))),
        "recall": (hits, float(len(expected))),
        "accuracy": (float(right), float(len(gold))),
    }


def equal_tags(gold: Sequence[str], predicted: Sequence[str]) -> int:
    return sum(one == other for one, other in zip(gold, predicted, strict=True))
