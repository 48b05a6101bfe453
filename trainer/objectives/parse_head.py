"""The loss of the head of attention that parses, in LISA.

Strubell et al. 2018, sections 2.2 and 2.5: the cross-entropies of the head of each piece, and of
the label of its word under the right head. ``B`` sequences, ``L`` positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from syntax.batches import IGNORE
from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.biaffine import mean_loss
from trainer.nn.encoder import Encoder
from trainer.objectives.shown_options import HEADS, ParseHeadOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class ParseHead(nn.Module):
    """Means over positions and over labelled pieces; a special token is its own head."""

    needs: frozenset[str] = frozenset({"tree_scores"})

    def __init__(self, options: ParseHeadOptions, config: SyntaxConfig, encoder: Encoder) -> None:  # noqa: ARG002
        super().__init__()
        self.options = options

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor:
        scores, heads_BL = encoding.tree_scores, batch.extra(HEADS).long()
        assert scores is not None
        labels_BL = torch.where(batch.deprel_BL > 0, batch.deprel_BL.long(), IGNORE)
        labels = mean_loss(scores.of_heads(heads_BL), labels_BL)
        targets_BL = heads_BL.masked_fill(~batch.attention_mask_BL, IGNORE)
        return mean_loss(scores.arcs_BLH, targets_BL) + self.options.label_weight * labels
