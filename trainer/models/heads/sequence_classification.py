"""One class for each example."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.options import SequenceClassificationOptions

NO_LABEL = -1
"""The class id of an example without a label; such examples take no part in the loss."""


class SequenceClassificationHead(nn.Module):
    """[CLS] state, dropout, linear, tanh, dropout, linear; not the pooler that came with BERT.

    Ahmad et al. (2021), as released; the paper does not say.

    Args:
        config: Dropout, label column and its classes.
        width: Of the encoder's states.
    """

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__()
        options = config.task_options()
        assert isinstance(options, SequenceClassificationOptions)
        self.label = options.label
        self.dropout = nn.Dropout(config.model_options().dropout)
        self.dense = nn.Linear(width, width)
        self.output = nn.Linear(width, len(config.classes[self.label]))

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits by label column, *shape* (B, classes), and the mean cross-entropy."""
        assert encoding.last_hidden_state is not None
        first_BD = self.dropout(encoding.last_hidden_state[:, 0])
        logits_BC = self.output(self.dropout(torch.tanh(self.dense(first_BD)))).float()
        gold_B = batch.labels.get(self.label)
        loss = None if gold_B is None else F.cross_entropy(logits_BC, gold_B, ignore_index=NO_LABEL)
        return HeadOutput({self.label: logits_BC}, loss)
