"""Where an answer starts and ends."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.options import ExtractiveQaOptions

START: Final = "start"
END: Final = "end"

LOWEST: Final = torch.finfo(torch.float32).min
"""A logit that no answer has. Minus infinity would make the gradient of an empty passage NaN."""


class ExtractiveQaHead(nn.Module):
    """Two scores at every position of the passage, and of [CLS] where there may be no answer.

    The loss of a question is the sum, not the mean, of those of start and end, as SG-Net's release
    has it; of a batch, the mean over its sequences, or over its passages where a softmax runs
    over all sequences of a passage (Clark and Gardner 2018, "shared normalization").

    Args:
        config: Dropout and the options of the task.
        width: Of the encoder's states.
    """

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__()
        options = config.task_options()
        assert isinstance(options, ExtractiveQaOptions)
        self.options = options
        self.dropout = nn.Dropout(config.model_options().dropout)
        self.output = nn.Linear(width, 2)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits ``start`` and ``end``, *shape* (B, L), `LOWEST` outside; and the loss."""
        logits_BL2 = self.output(self.dropout(encoding.last_hidden_state)).float()
        allowed_BL = self._allowed(batch)
        start_BL, end_BL = (
            logits_BL.masked_fill(~allowed_BL, LOWEST) for logits_BL in logits_BL2.unbind(-1)
        )
        logits = {START: start_BL, END: end_BL}
        if START not in batch.labels:
            return HeadOutput(logits, None)
        losses = [self._loss(logits[end], batch, end) for end in (START, END)]
        return HeadOutput(logits, losses[0] + losses[1])

    def _allowed(self, batch: SyntaxBatch) -> Tensor:
        allowed_BL = batch.extra("segment_ids") == self.options.segment
        if self.options.no_answer:
            first = torch.zeros_like(allowed_BL)
            first[:, 0] = True
            return allowed_BL | first
        return allowed_BL

    def _loss(self, logits_BL: Tensor, batch: SyntaxBatch, end: str) -> Tensor:
        gold_B = batch.labels[end]
        if self.options.normalisation == "sequence" or "example_index" not in batch.extras:
            losses_B = F.cross_entropy(logits_BL, gold_B, reduction="none")
            return losses_B.sum() / (gold_B >= 0).sum().clamp(min=1)
        return shared_loss(logits_BL, gold_B, batch.extras["example_index"].long())


def shared_loss(logits_BL: Tensor, gold_B: Tensor, example_B: Tensor) -> Tensor:
    """Cross-entropy with one softmax over all sequences of an example.

    ``-log(sum of gold exp(s) / sum of all exp(s))``, where overlapping sequences may hold the gold
    position several times; the mean over the examples that have it at all.

    Args:
        logits_BL: Scores.
        gold_B: The gold position of each sequence; negative without one.
        example_B: The example of each sequence, from 0.
    """
    examples = int(example_B.max()) + 1
    all_E = _logsumexp_by(logits_BL.logsumexp(1), example_B, examples)
    gold_scores_B = logits_BL.gather(1, gold_B.clamp(min=0)[:, None]).squeeze(1)
    gold_E = _logsumexp_by(gold_scores_B.masked_fill(gold_B < 0, LOWEST), example_B, examples)
    known_E = torch.zeros(examples, dtype=torch.bool, device=gold_B.device)
    known_E[example_B[gold_B >= 0]] = True
    return (all_E - gold_E)[known_E].sum() / known_E.sum().clamp(min=1)


def _logsumexp_by(values_B: Tensor, example_B: Tensor, examples: int) -> Tensor:
    """Of the values of each example. *Shape:* (examples,)."""
    rows_EB = torch.full((examples, len(values_B)), LOWEST, device=values_B.device)
    at = torch.arange(len(values_B), device=values_B.device)
    return rows_EB.index_put((example_B, at), values_B).logsumexp(1)
