"""The class of two mentions in a text.

Letters in shapes: ``B`` examples, ``L`` positions, ``D`` width of the states.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.heads.sequence_classification import NO_LABEL
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.options import RelationOptions


class RelationHead(nn.Module):
    """Text, subject and object, each the maximum over its positions, through linear layers.

    Ahmad et al. 2021 (AAAI), "Relation Extractor" and "Event Argument Role Labeler". The release
    has one hidden layer more, and no dropout (`trainer.switches.RELATION`).

    Args:
        config: Dropout, label columns and their classes.
        width: Of the encoder's states.
    """

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__()
        options = config.task_options()
        assert isinstance(options, RelationOptions)
        self.options = options
        self.dense = nn.Linear(3 * width, width)
        self.second: nn.Linear | None = None
        if options.classifier == "as_released":
            self.second = nn.Linear(width, width)
        self.dropout = nn.Dropout(config.model_options().dropout)
        self.output = nn.Linear(width, len(config.classes[options.label]))

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits by label column, *shape* (B, classes), and the mean cross-entropy."""
        states_BLD, label = encoding.last_hidden_state, self.options.label
        assert states_BLD is not None
        masks = [batch.attention_mask_BL & ~batch.special_tokens_mask_BL]
        masks += [batch.labels[name] > 0 for name in self.options.spans()]
        pooled_BD = torch.cat([max_over(states_BLD, mask_BL) for mask_BL in masks], -1)
        logits_BC = self.output(self._hidden(pooled_BD)).float()
        gold_B = batch.labels.get(label)
        loss = None if gold_B is None else F.cross_entropy(logits_BC, gold_B, ignore_index=NO_LABEL)
        return HeadOutput({label: logits_BC}, loss)

    def _hidden(self, pooled_BD: Tensor) -> Tensor:
        hidden_BD = F.relu(self.dense(pooled_BD))
        if self.second is None:
            dropped_BD: Tensor = self.dropout(hidden_BD)
            return dropped_BD
        return F.relu(self.second(hidden_BD))


def max_over(states_BLD: Tensor, mask_BL: Tensor) -> Tensor:
    """The largest of each number over chosen positions, of which there is one. *Shape:* (B, D)."""
    least = torch.finfo(states_BLD.dtype).min
    return states_BLD.masked_fill(~mask_BL[..., None], least).amax(1)
