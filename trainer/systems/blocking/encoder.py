"""A stock encoder all of whose heads are blocked beyond a tree distance.

Ahmad et al. 2021 mask the graph encoder so (equation 3); section 4.3 tries it on mBERT itself. In
every head of every layer, position i attends to j if their distance in the tree is at most delta.
Special tokens see everything and are seen by everything, which is our choice: with the mask alone,
[CLS] would not read the words far below the root.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.attention import LayerSyntax, check_reads_syntax, never_empty
from trainer.nn.encoder import StockEncoder
from trainer.nn.selfcheck import check_reads_scores
from trainer.systems.blocking.options import BlockingOptions


class BlockingEncoder(StockEncoder):
    """States of the pieces under the mask."""

    options: BlockingOptions

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        if self.options.use_syntax:
            check_reads_syntax(self.encoder.config._attn_implementation)
            near_BLL = near(batch, self.options.max_distance)
            score_BLL = torch.zeros_like(near_BLL, dtype=torch.float32)
            score_B1LL = score_BLL.masked_fill(~near_BLL, -math.inf)[:, None]
            layers = int(self.encoder.config.num_hidden_layers)
            options["syntax"] = [LayerSyntax(score_BNLL=score_B1LL)] * layers
        return super().forward(batch, **options)

    def check_attention(self) -> None:
        if self.options.use_syntax:
            check_reads_scores(self.encoder)


def near(batch: SyntaxBatch, max_distance: int) -> Tensor:
    """``[i, j]``: i attends to j. No real row is empty. *Shape:* (B, L, L), bool."""
    distance_BLL, special_BL = batch.distances(), batch.special_tokens_mask_BL
    near_BLL = (distance_BLL <= max_distance) & batch.reachable_BLL
    return never_empty(near_BLL | special_BL[:, :, None] | special_BL[:, None, :], batch)
