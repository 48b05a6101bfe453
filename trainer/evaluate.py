"""Scoring a model on a stream of batches."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from trainer.batch import SyntaxBatch
from trainer.data import Source, unlabelled_error
from trainer.options import Recipe
from trainer.tasks import Scorer, Scores


@torch.no_grad()
def evaluate(model: nn.Module, batches: Iterable[SyntaxBatch], scorer: Scorer) -> Scores:
    """Score a model on every batch; its training mode is left as it was."""
    training = model.training
    model.eval()
    for batch in batches:
        scorer.add(model(batch), batch)
    model.train(training)
    return scorer.scores()


def check_labelled(source: Source, recipe: Recipe, split: str, lang: str) -> None:
    """Refuse data without labels, whose scores would be those of a model that is always wrong.

    Args:
        source: The data.
        recipe: Its task reads the labels.
        split: Their split, for the message.
        lang: Their language.

    Raises:
        SpecError: No example has labels.
    """
    task = recipe.task
    names = list(task.found())
    if names and not task.has_labels(source.dataset.columns(names).to_pydict()):
        raise unlabelled_error(source.dataset, task, split, lang, "to be scored by")
