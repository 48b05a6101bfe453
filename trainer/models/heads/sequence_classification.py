"""One class for each example."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.options import SequenceClassificationOptions

NO_LABEL = -1
"""The class id of an example without a label; such examples take no part in the loss."""


class ClassifierOfFirst(nn.Module):
    """[CLS] state, dropout, linear, tanh, dropout, linear; not the pooler that came with BERT.

    Ahmad et al. (2021), as released; the paper does not say. With the pooler, the first dropout is
    left out and the first linear map is the pretrained one, as in BERT's own classifier.

    Args:
        width: Of the encoder's states.
        classes: Number of classes.
        dropout: Probability.
        pooler: Whether the first map is the encoder's pooler.
    """

    def __init__(self, width: int, classes: int, dropout: float, *, pooler: bool = False) -> None:
        super().__init__()
        self.pooler = pooler
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(width, width)
        self.output = nn.Linear(width, classes)

    def forward(self, states_BLD: Tensor) -> Tensor:
        """Logits, one row per sequence. *Shape:* (B, classes), float32."""
        first_BD = states_BLD[:, 0] if self.pooler else self.dropout(states_BLD[:, 0])
        pooled_BD = torch.tanh(self.dense(first_BD))
        logits_BC: Tensor = self.output(self.dropout(pooled_BD)).float()
        return logits_BC

    def load_pooler(self, dense: nn.Linear) -> None:
        """Take the weights of a pretrained pooler.

        Raises:
            SpecError: It is of another width.
        """
        if dense.weight.shape != self.dense.weight.shape:
            raise SpecError(
                f"the pretrained pooler reads states of {dense.in_features} numbers, and the "
                f"model's have {self.dense.in_features}; set task.pooler=false"
            )
        self.dense.load_state_dict(dense.state_dict())


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
        self.classifier = ClassifierOfFirst(width, classes, dropout, pooler=options.pooler)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits by label column, *shape* (B, classes), and the mean cross-entropy."""
        assert encoding.last_hidden_state is not None
        logits_BC = self.classifier(encoding.last_hidden_state)
        gold_B = batch.labels.get(self.label)
        loss = None if gold_B is None else F.cross_entropy(logits_BC, gold_B, ignore_index=NO_LABEL)
        return HeadOutput({self.label: logits_BC}, loss)
