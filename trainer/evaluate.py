"""Scoring a model on a stream of batches."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
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


def check_scored(scores: Scores, *where: str) -> None:
    """Refuse the scores of nothing, which would look like those of a model that is always wrong.

    Args:
        scores: The scores.
        where: Dataset, split and language.

    Raises:
        SpecError: No example had labels.
    """
    if not scores.examples:
        raise SpecError(
            f"{' '.join(where)}: no example has labels to score by; `parsebank predict` reads "
            "texts without any"
        )
