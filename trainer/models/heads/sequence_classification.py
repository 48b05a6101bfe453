"""One class for each example."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.options import SequenceClassificationOptions

NO_LABEL = -1
"""The class id of an example without a label; such examples take no part in the loss."""


class ClassifierOfFirst(nn.Module):
    """[CLS] state, dropout, linear, tanh, dropout, linear; not the pooler that came with BERT.

    Ahmad et al. (2021), as released; the paper does not say.

    Args:
        width: Of the encoder's states.
        classes: Number of classes.
        dropout: Probability.
    """

    def __init__(self, width: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(width, width)
        self.output = nn.Linear(width, classes)

    def forward(self, states_BLD: Tensor) -> Tensor:
        """Logits, one row per sequence. *Shape:* (B, classes), float32."""
        first_BD = torch.tanh(self.dense(self.dropout(states_BLD[:, 0])))
        logits_BC: Tensor = self.output(self.dropout(first_BD)).float()
        return logits_BC


class SequenceClassificationHead(nn.Module):
    """The classifier of [CLS], and cross-entropy.

    Args:
        config: Dropout, label column and its classes.
        width: Of the encoder's states.
    """

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__()
        options = config.task_options()
        assert isinstance(options, SequenceClassificationOptions)
        self.label = options.label
        classes, dropout = len(config.classes[self.label]), config.model_options().dropout
        self.classifier = ClassifierOfFirst(width, classes, dropout)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits by label column, *shape* (B, classes), and the mean cross-entropy."""
        assert encoding.last_hidden_state is not None
        logits_BC = self.classifier(encoding.last_hidden_state)
        gold_B = batch.labels.get(self.label)
        loss = None if gold_B is None else F.cross_entropy(logits_BC, gold_B, ignore_index=NO_LABEL)
        return HeadOutput({self.label: logits_BC}, loss)
