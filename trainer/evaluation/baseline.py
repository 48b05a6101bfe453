"""Scores without a model, to compare those of a model with."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from syntax.errors import ParsebankError
from trainer.data import with_parses
from trainer.options import Recipe
from trainer.tasks.base import Task

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore

_LOG: Final = logging.getLogger(__name__)


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

    The baseline knows ``train``. If it fails, it is logged as a warning: the scores of the model,
    which took longer, are kept without it.
    """
    try:
        baseline = None if train is None else task.baseline(train)
        if baseline is None:
            return {}
        return {
            name: BaselineScore(baseline.name, task.metric, baseline.score(data))
            for name, data in parts.items()
        }
    except Exception:  # a task of a plugin may raise anything
        _LOG.warning("the baseline failed, and the result has none", exc_info=True)
        return {}


def training_data(store: FeatureStore, recipe: Recipe) -> FeatureDataset | None:
    """The labelled examples that a run was trained on; None where the store does not have them."""
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
        return with_parses(store, dataset.where(labelled=recipe.task.found()), recipe)
    except ParsebankError:
        return None
