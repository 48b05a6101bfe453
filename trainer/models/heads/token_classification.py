"""One class for each token."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from syntax.batches import IGNORE
from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.options import TokenClassificationOptions


class TokenClassificationHead(nn.Module):
    """Dropout and one linear map at every position; the loss is that of the labelled ones.

    Args:
        config: Dropout, label column and its classes.
        width: Of the encoder's states.
    """

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__()
        options = config.task_options()
        assert isinstance(options, TokenClassificationOptions)
        self.label = options.label
        self.dropout = nn.Dropout(config.model_options().dropout)
        self.output = nn.Linear(width, len(config.classes[self.label]))

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits by label column, *shape* (B, L, classes), and the mean cross-entropy."""
        logits_BLC = self.output(self.dropout(encoding.last_hidden_state)).float()
        return HeadOutput({self.label: logits_BLC}, piece_loss(logits_BLC, batch, self.label))


def piece_loss(logits_BLC: Tensor, batch: SyntaxBatch, label: str) -> Tensor | None:
    """Mean cross-entropy of the labelled positions; None when the batch carries no labels."""
    gold_BL = batch.labels.get(label)
    if gold_BL is None:
        return None
    return F.cross_entropy(logits_BLC.flatten(0, 1), gold_BL.flatten(), ignore_index=IGNORE)
