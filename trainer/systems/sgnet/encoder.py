"""SG-Net: one more layer in which each word attends to itself and its ancestors.

Zhang et al. 2020 (AAAI): the mask of equation 6 in a layer on top of a stock encoder (equation 7),
whose states are then mixed with the encoder's own (dual aggregation, equations 8 and 9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.attention import EAGER, LayerSyntax, masked_softmax, never_empty
from trainer.nn.encoder import Encoder
from trainer.nn.selfcheck import check_layer_multiplies, check_layer_obeys
from trainer.nn.stock import (
    further_attention,
    further_keywords,
    further_layer,
    new_encoder,
    run_encoder,
)
from trainer.nn.transformer import first_setting
from trainer.systems.sgnet.options import SgNetOptions, SgNetTransformerOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class PublishedLayer(nn.Module):
    """``LayerNorm(W_2 GELU(W_1 C) + H)``, with the attention's C of the states H (section 3.2).

    The attention is that of the encoder's layers, without the map behind it; the inner width and
    the dropout, which the paper does not give, are those of the encoder's feed-forward networks.
    """

    def __init__(self, encoder: PreTrainedModel) -> None:
        super().__init__()
        config = encoder.config
        self.attention = nn.ModuleDict({"self": further_attention(encoder)})
        self.network = nn.Sequential(
            nn.Linear(config.hidden_size, config.intermediate_size),
            nn.GELU(),
            nn.Linear(config.intermediate_size, config.hidden_size),
            nn.Dropout(first_setting(config, ("hidden_dropout_prob", "mlp_dropout"), 0.1)),
        )
        epsilon = first_setting(config, ("layer_norm_eps", "norm_eps"), 1e-12)
        self.norm = nn.LayerNorm(config.hidden_size, eps=epsilon)

    def forward(self, states_BLD: Tensor, mask: Tensor, **options: Any) -> Tensor:
        context_BLD = self.attention["self"](states_BLD, attention_mask=mask, **options)[0]
        guided_BLD: Tensor = self.norm(self.network(context_BLD) + states_BLD)
        return guided_BLD


class DualAggregation(nn.Module):
    """Mixes the encoder's states H and the syntax-guided H'.

    Published: ``alpha H + (1 - alpha) H'`` with a fixed alpha (equation 9). Released: ``gamma (w_0
    H + w_1 H')`` with w the softmax of two learned numbers, both 0.5 at first, and a learned gamma,
    1 at first.
    """

    own_initial_weights = True

    def __init__(self, options: SgNetOptions) -> None:
        super().__init__()
        self.alpha = options.alpha
        learned = options.aggregation == "as_released"
        self.weights_2 = nn.Parameter(torch.empty(2)) if learned else None
        self.gamma = nn.Parameter(torch.empty(())) if learned else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weights_2 is not None and self.gamma is not None:
            nn.init.constant_(self.weights_2, 0.5)
            nn.init.constant_(self.gamma, 1.0)

    def forward(self, own_BLD: Tensor, guided_BLD: Tensor, _real_BL: Tensor) -> Tensor:
        if self.weights_2 is None or self.gamma is None:
            return torch.lerp(guided_BLD, own_BLD, self.alpha)
        own, guided = self.weights_2.softmax(0)
        mixed_BLD: Tensor = self.gamma * (own * own_BLD + guided * guided_BLD)
        return mixed_BLD


class Concatenation(nn.Module):
    """A linear map of ``[h; h']`` (Table 6)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * width, width)

    def forward(self, own_BLD: Tensor, guided_BLD: Tensor, _real_BL: Tensor) -> Tensor:
        mixed_BLD: Tensor = self.linear(torch.cat([own_BLD, guided_BLD], -1))
        return mixed_BLD


class BiAttention(nn.Module):
    """A linear map of what bi-directional attention gives for each position (Table 6).

    Seo et al. 2017 (https://arxiv.org/abs/1611.01603): similarities ``s_ij = w [h_i; h'_j;
    h_i h'_j]``; u_i sums h' by the shares ``softmax_j s_ij``, and v sums h by the shares
    ``softmax_i max_j s_ij``. The map reads ``[h_i; u_i; h_i u_i; h_i v]``.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.own, self.guided, self.product = (nn.Linear(width, 1, bias=False) for _ in range(3))
        self.linear = nn.Linear(4 * width, width)

    def forward(self, own_BLD: Tensor, guided_BLD: Tensor, real_BL: Tensor) -> Tensor:
        products_BLL = (own_BLD * self.product.weight) @ guided_BLD.transpose(1, 2)
        similar_BLL = products_BLL + self.own(own_BLD) + self.guided(guided_BLD).transpose(1, 2)
        found_BLD = masked_softmax(similar_BLL, real_BL[:, None]) @ guided_BLD
        low = torch.finfo(similar_BLL.dtype).min
        best_BL = similar_BLL.masked_fill(~real_BL[:, None], low).amax(-1)
        all_B1D = masked_softmax(best_BL, real_BL)[:, None] @ own_BLD
        parts = (own_BLD, found_BLD, own_BLD * found_BLD, own_BLD * all_B1D)
        mixed_BLD: Tensor = self.linear(torch.cat(parts, -1))
        return mixed_BLD


class SgNetEncoder(Encoder):
    """A stock encoder, a syntax-guided layer, and their mix; without syntax the first alone.

    Over the Transformer's encoder a decoder reads the mix (equation 16, whose keys are a misprint).
    """

    gives: ClassVar[frozenset[str]] = frozenset({"hidden_states", "attentions"})

    options: SgNetOptions | SgNetTransformerOptions

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        self.sgnet = self.options.sgnet
        self.encoder = pretrained if pretrained is not None else new_encoder(config)
        self.width = int(self.encoder.config.hidden_size)
        self.guided = self.aggregation = None
        if self.options.use_syntax:
            published = self.sgnet.layer == "as_published"
            self.guided = PublishedLayer(self.encoder) if published else further_layer(self.encoder)
            self.aggregation = _aggregation(self.sgnet, self.width)

    @property
    def stock(self) -> PreTrainedModel:
        return self.encoder

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        output = run_encoder(self.encoder, batch, **options)
        states_BLD = output.last_hidden_state
        if self.aggregation is not None:
            guided_BLD, real_BL = self._guided(states_BLD, batch), batch.attention_mask_BL
            mixed_BLD = self.aggregation(states_BLD, guided_BLD, real_BL)
            if self.sgnet.specials == "as_published":  # footnote 11
                special_BL1 = batch.special_tokens_mask_BL[..., None]
                mixed_BLD = torch.where(special_BL1, states_BLD, mixed_BLD)
            states_BLD = mixed_BLD
        return SyntaxEncoding(
            last_hidden_state=states_BLD,
            hidden_states=output.get("hidden_states"),
            attentions=output.get("attentions"),
        )

    def check_attention(self) -> None:
        if self.guided is None or self.sgnet.masking == "none":
            return
        multiplies = self.sgnet.masking == "as_published"
        check = check_layer_multiplies if multiplies else check_layer_obeys
        check(self.guided, self.encoder, self.sgnet.mask_name, self._guided)

    def _guided(self, states_BLD: Tensor, batch: SyntaxBatch, **options: Any) -> Tensor:
        assert self.guided is not None
        seen_BLL = batch.attention_mask_BL[:, None].expand(-1, states_BLD.shape[1], -1)
        if self.sgnet.masking == "as_released":
            seen_BLL = batch.extra(self.sgnet.mask_name)
        elif self.sgnet.masking == "as_published":
            factor_B1LL = batch.extra(self.sgnet.mask_name)[:, None].to(states_BLD.dtype)
            config = self.encoder.config
            heads, layers = int(config.num_attention_heads), int(config.num_hidden_layers)
            part = LayerSyntax(factor_BKLL=factor_B1LL.expand(-1, heads, -1, -1))
            options["syntax"] = [part] * (layers + 1)  # for whatever number the layer has
        mask = self._attention_mask(never_empty(seen_BLL, batch), states_BLD.dtype)
        options |= further_keywords(self.encoder, states_BLD)
        guided_BLD: Tensor = self.guided(states_BLD, mask, **options)
        return guided_BLD

    def _attention_mask(self, seen_BLL: Tensor, dtype: torch.dtype) -> Tensor:
        seen_B1LL = seen_BLL[:, None]
        if self.encoder.config._attn_implementation != EAGER:
            return seen_B1LL
        low = torch.finfo(dtype).min
        return torch.zeros_like(seen_B1LL, dtype=dtype).masked_fill(~seen_B1LL, low)


def _aggregation(options: SgNetOptions, width: int) -> nn.Module:
    if options.aggregation == "concatenation":
        return Concatenation(width)
    if options.aggregation == "bi_attention":
        return BiAttention(width)
    return DualAggregation(options)
