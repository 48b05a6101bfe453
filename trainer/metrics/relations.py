"""Precision, recall and F1 of relations: the class for "no relation" counts as no answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.metrics import NamedScores
from trainer.metrics.entities import SpanScores, span_scores


@dataclass(frozen=True, slots=True)
class RelationScores(NamedScores):
    """Scores of relations; all but accuracy leave out the class for none."""

    examples: int
    precision: float
    recall: float
    f1: float
    accuracy: float
    loss: float
    per_class: dict[str, SpanScores]

    metric = "f1"


def relation_scores(
    gold: NDArray[np.int64],
    predicted: NDArray[np.int64],
    names: Sequence[str],
    null: str,
    loss: float = 0.0,
    empty_precision: float = 0.0,
) -> RelationScores:
    """Score predicted class ids against gold ones; negative gold ids are left out.

    Where nothing but ``null`` is predicted, precision is ``empty_precision``, 1 in GATE's release.

    >>> gold, predicted = np.array([0, 1, 2, 2]), np.array([1, 1, 0, 2])
    >>> scores = relation_scores(gold, predicted, ["no_relation", "part", "role"], "no_relation")
    >>> round(scores.precision, 3), round(scores.recall, 3), scores.accuracy
    (0.667, 0.667, 0.5)
    """
    known = gold >= 0
    gold, predicted = gold[known], predicted[known]
    each = {
        name: span_scores(
            int(((gold == index) & (predicted == index)).sum()),
            int((predicted == index).sum()),
            int((gold == index).sum()),
        )
        for index, name in enumerate(names)
        if name != null
    }
    none = list(names).index(null)
    right, said, real = gold == predicted, predicted != none, gold != none
    micro = span_scores(int((right & real).sum()), int(said.sum()), int(real.sum()))
    return RelationScores(
        examples=len(gold),
        precision=micro.precision if said.any() else empty_precision,
        recall=micro.recall,
        f1=micro.f1,
        accuracy=float(right.mean()) if len(gold) else 0.0,
        loss=loss,
        per_class=each,
    )
