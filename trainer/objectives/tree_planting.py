"""Attention of a head to each word, the less the farther the word is in the tree.

Yoshida, Someya and Oseki 2024 (Findings of ACL, https://aclanthology.org/2024.findings-acl.303),
"Tree-Planted Transformers". With D_ij the edges of the tree between the words i and j, the
supervision is ``S_ij = exp(-D_ij) / sum_k exp(-D_ik)`` over the words before i, and the loss the
mean over words of ``KL(S_i || A_i)``. A_ij is the attention between the words: the sum of the
weights between their pieces, normalised to 1 over the words that S_i names. In a causal model the
rows of A_i are those of the positions that predict the pieces of i, one before each.

An encoder that reads both directions has no paper. There, the rows are those of the pieces of i,
and S_i has every other word of the tree.

Letters in shapes: ``B`` examples, ``K`` heads, ``L`` wordpieces, ``W`` words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.attention import masked_softmax
from trainer.nn.encoder import Encoder
from trainer.nn.stock import is_causal
from trainer.objectives.shown_options import PLANTING_ARRAYS, TreePlantingOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig

_LEAST: Final = 1e-30
"""Least value in a logarithm, as in the release."""


class TreePlanting(nn.Module):
    """The loss of the attention of some heads of the last layer, a mean over words and heads.

    A word without another one in its tree, or in a causal model before it, has no row. Special
    tokens are not words.
    """

    needs: frozenset[str] = frozenset({"attention_rows"})

    def __init__(
        self,
        options: TreePlantingOptions,
        config: SyntaxConfig,  # noqa: ARG002
        encoder: Encoder,
    ) -> None:
        super().__init__()
        self.options = options
        stock = encoder.stock
        self.causal = stock is not None and is_causal(stock)
        count = 0 if stock is None else int(stock.config.num_attention_heads)
        if stock is not None and max(options.heads) >= count:
            raise SpecError(
                f"objectives.tree_planting.heads names the head {max(options.heads)}, and the "
                f"encoder has heads 0 to {count - 1}; name one of these"
            )

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor:
        numbers_BL, first_BW = (batch.extra(name).long() for name in PLANTING_ARRAYS)
        assert encoding.attention_rows is not None
        L, W = numbers_BL.shape[1], first_BW.shape[1]
        every_BL = torch.arange(L, device=numbers_BL.device).expand(numbers_BL.shape)
        weights_BKLL = encoding.attention_rows.weights(every_BL, heads=self.options.heads)
        distance_BWW, pairs_BWW = self.pairs(batch, first_BW)
        words_BWL = numbers_BL[:, None, :] == torch.arange(W, device=numbers_BL.device)[:, None]
        with torch.autocast(weights_BKLL.device.type, enabled=False):
            words_BWL = words_BWL.float()
            rows_BWL = F.pad(words_BWL[..., 1:], (0, 1)) if self.causal else words_BWL
            between_BKWW = torch.einsum("bwr,bkrl,bvl->bkwv", rows_BWL, weights_BKLL, words_BWL)
            return planting_loss(between_BKWW, distance_BWW, pairs_BWW)

    def pairs(self, batch: SyntaxBatch, first_BW: Tensor) -> tuple[Tensor, Tensor]:
        """Edges between words, int, and the supervised pairs, bool. *Shape:* (B, W, W) each."""
        B, W = first_BW.shape
        rows_B11 = torch.arange(B, device=first_BW.device)[:, None, None]
        at_BW = first_BW.clamp(min=0)
        distance_BWW = batch.distances()[rows_B11, at_BW[:, :, None], at_BW[:, None, :]].long()
        real_BW = first_BW >= 0
        pairs_BWW = real_BW[:, :, None] & real_BW[:, None, :]
        pairs_BWW = pairs_BWW & (distance_BWW != batch.unreachable)
        other_WW = torch.ones(W, W, dtype=torch.bool, device=first_BW.device)
        other_WW = other_WW.tril(-1) if self.causal else other_WW ^ torch.eye(W).to(other_WW)
        return distance_BWW, pairs_BWW & other_WW


def planting_loss(between_BKWW: Tensor, distance_BWW: Tensor, pairs_BWW: Tensor) -> Tensor:
    """The mean over heads and words of ``KL(S_i || A_i)``, A not normalised; 0 without a pair."""
    pairs_B1WW = pairs_BWW[:, None]
    target_B1WW = masked_softmax(-distance_BWW.float(), pairs_BWW)[:, None]
    found_BKWW = between_BKWW.masked_fill(~pairs_B1WW, 0.0)
    whole_BKW1 = found_BKWW.sum(-1, keepdim=True)
    ratio_BKWW = target_B1WW.clamp(min=_LEAST).log() - found_BKWW.clamp(min=_LEAST).log()
    ratio_BKWW = ratio_BKWW + whole_BKW1.clamp(min=_LEAST).log()
    each_BKW = (target_B1WW * ratio_BKWW).sum(-1)
    rows = pairs_BWW.any(-1).sum() * between_BKWW.shape[1]
    return each_BKW.sum() / rows.clamp(min=1)
