"""Scores without a model, to hold those of a model against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syntax.errors import ParsebankError
from trainer.options import Recipe
from trainer.tasks import Task

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore


@dataclass(frozen=True, slots=True)
class BaselineScore:
    """The score of a task's baseline (`trainer.tasks.Baseline`), by the headline metric."""

    name: str
    metric: str
    score: float


def baseline_scores(
    task: Task, train: FeatureDataset | None, parts: Mapping[str, FeatureDataset]
) -> dict[str, BaselineScore]:
    """Scores of a task's baseline on some datasets, by their names; none without a baseline.

    Args:
        task: What is predicted.
        train: The training examples, which the baseline knows; None where they are unknown.
        parts: What is scored.
    """
    baseline = None if train is None else task.baseline(train)
    if baseline is None:
        return {}
    return {
        name: BaselineScore(baseline.name, task.metric, baseline.score(data))
        for name, data in parts.items()
    }


def training_data(store: FeatureStore, recipe: Recipe) -> FeatureDataset | None:
    """The labelled examples that a run was trained on; None where the store does not have them.

    Args:
        store: Where the examples lie.
        recipe: Of the run, its dataset version pinned.
    """
    data = recipe.data
    try:
        dataset = store.dataset(
            data.dataset,
            tokenizer=data.tokenizer,
            split=data.train_split,
            lang=data.lang,
            version=data.version,
            parser=data.parser,
        )
    except ParsebankError:
        return None
    return dataset.where(labelled=recipe.task.found())
