"""SG-Net: one more layer in which each word attends to itself and its ancestors.

Zhang et al. 2020 (AAAI): the mask of equation 6 in a layer on top of a stock encoder (equation 7),
whose states are then mixed with the encoder's own (dual aggregation, equations 8 and 9). Equation 7
multiplies the scores by the mask, which would leave masked positions a weight; we mask them out, as
the release does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.attention import EAGER, LayerSyntax, never_empty
from trainer.nn.encoder import Encoder
from trainer.nn.selfcheck import check_layer_obeys
from trainer.nn.stock import further_layer, new_encoder, run_encoder
from trainer.systems.sgnet.options import SgNetOptions, SgNetTransformerOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class DualAggregation(nn.Module):
    """Mixes the encoder's states H and the syntax-guided H'.

    Published: ``alpha H + (1 - alpha) H'`` with a fixed alpha (equation 9). Released: ``gamma (w_0
    H + w_1 H')`` with w the softmax of two learned numbers, both 0.5 at first, and a learned gamma,
    1 at first.
    """

    own_initial_weights = True

    def __init__(self, options: SgNetOptions | SgNetTransformerOptions) -> None:
        super().__init__()
        self.alpha = options.alpha
        learned = options.aggregation in ("as_released", "learned")
        self.weights_2 = nn.Parameter(torch.empty(2)) if learned else None
        self.gamma = nn.Parameter(torch.empty(())) if learned else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weights_2 is not None and self.gamma is not None:
            nn.init.constant_(self.weights_2, 0.5)
            nn.init.constant_(self.gamma, 1.0)

    def forward(self, own_BLD: Tensor, guided_BLD: Tensor) -> Tensor:
        if self.weights_2 is None or self.gamma is None:
            return torch.lerp(guided_BLD, own_BLD, self.alpha)
        own, guided = self.weights_2.softmax(0)
        mixed_BLD: Tensor = self.gamma * (own * own_BLD + guided * guided_BLD)
        return mixed_BLD


class SgNetEncoder(Encoder):
    """A stock encoder, a syntax-guided layer, and their mix; without syntax the first alone."""

    gives: ClassVar[frozenset[str]] = frozenset({"hidden_states", "attentions"})

    options: SgNetOptions | SgNetTransformerOptions

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        options = self.options
        self.mask = options.mask_name
        self.encoder = pretrained if pretrained is not None else new_encoder(config)
        self.width = int(self.encoder.config.hidden_size)
        self.guided = self.aggregation = None
        if options.use_syntax:
            self.guided = further_layer(self.encoder)
            self.aggregation = DualAggregation(options)

    @property
    def stock(self) -> PreTrainedModel:
        return self.encoder

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        output = run_encoder(self.encoder, batch, **options)
        states_BLD = output.last_hidden_state
        if self.aggregation is not None:
            states_BLD = self.aggregation(states_BLD, self._guided(states_BLD, batch))
        return SyntaxEncoding(
            last_hidden_state=states_BLD,
            hidden_states=output.get("hidden_states"),
            attentions=output.get("attentions"),
        )

    def check_attention(self) -> None:
        if self.guided is not None:
            check_layer_obeys(self.guided, self.encoder, self.mask, self._guided)

    def _guided(self, states_BLD: Tensor, batch: SyntaxBatch) -> Tensor:
        assert self.guided is not None
        guided_BLD: Tensor = self.guided(states_BLD, self._attention_mask(batch, states_BLD))
        return guided_BLD

    def _seen(self, batch: SyntaxBatch) -> Tensor:
        return batch.extra(self.mask)

    def _attention_mask(self, batch: SyntaxBatch, states_BLD: Tensor) -> Tensor:
        mask_B1LL = never_empty(self._seen(batch), batch)[:, None]
        if self.encoder.config._attn_implementation != EAGER:
            return mask_B1LL
        low = torch.finfo(states_BLD.dtype).min
        return torch.zeros_like(mask_B1LL, dtype=states_BLD.dtype).masked_fill(~mask_B1LL, low)


class SgNetTransformerEncoder(SgNetEncoder):
    """The Transformer's encoder, a syntax-guided layer, and the mix of both, for translation.

    ``masking=multiply`` follows equation 7 to the letter: forbidden positions have a score of 0,
    and so a weight. A decoder reads the mixed states (equation 16, whose keys are a misprint).
    """

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
