"""Scoring a model on a stream of batches."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

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
