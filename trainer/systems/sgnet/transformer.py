"""SG-Net for translation: the syntax-guided layer on top of the Transformer's encoder.

Zhang et al. 2020, "SG-Net: Syntax Guided Transformer for Language Representation". Equation 7
multiplies the scores by the mask, which gives forbidden positions a score of 0 and so a weight;
``masking=multiply`` does that to the letter. A decoder reads the mixed states (equation 16, whose
keys are a misprint).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers import PreTrainedModel

from trainer.batch import SyntaxBatch
from trainer.nn.attention import LayerSyntax
from trainer.systems.sgnet.encoder import SgNetEncoder
from trainer.systems.sgnet.options import SgNetTransformerOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class SgNetTransformerEncoder(SgNetEncoder):
    """The Transformer's encoder, a syntax-guided layer, and the mix of both."""

    options: SgNetTransformerOptions

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        options = self.options
        self.multiplies = options.masking == "multiply"

    def check_attention(self) -> None:
        if not self.multiplies:
            super().check_attention()

    def _seen(self, batch: SyntaxBatch) -> Tensor:
        mask_BLL = super()._seen(batch)
        return torch.ones_like(mask_BLL) if self.multiplies else mask_BLL

    def _guided(self, states_BLD: Tensor, batch: SyntaxBatch) -> Tensor:
        if not self.multiplies:
            return super()._guided(states_BLD, batch)
        assert self.guided is not None
        heads = int(self.encoder.config.num_attention_heads)
        mask_B1LL = batch.extra(self.mask)[:, None].to(states_BLD.dtype)
        syntax = [LayerSyntax(factor_BKLL=mask_B1LL.expand(-1, heads, -1, -1))]
        seen_B1LL = self._attention_mask(batch, states_BLD)
        guided_BLD: Tensor = self.guided(states_BLD, seen_B1LL, syntax=syntax)
        return guided_BLD
