"""Task heads: from the encoder's states to logits."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SequenceClassificationHead(nn.Module):
    """[CLS] state, dropout, linear, tanh, dropout, linear; not the pooler that came with BERT.

    Ahmad et al. (2021), as released; the paper does not say.

    Args:
        width: Of the encoder's states.
        labels: Number of classes.
        dropout: Probability.
    """

    def __init__(self, width: int, labels: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(width, width)
        self.output = nn.Linear(width, labels)

    def forward(self, states_BLD: Tensor) -> Tensor:
        """Logits, one row per example. *Shape:* (B, labels)."""
        first_BD = self.dropout(states_BLD[:, 0])
        logits: Tensor = self.output(self.dropout(torch.tanh(self.dense(first_BD))))
        return logits
