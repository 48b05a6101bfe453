"""A stock encoder some of whose heads are scaled around the parents of words: PASCAL.

Bugliarello and Okazaki 2020 (https://aclanthology.org/2020.acl-main.147), section 3. With p_t the
middle of the pieces of the parent of piece t, the scaled scores s of a head become

    n_tj = s_tj d_tj,  d_tj = exp(-(j - p_t)^2 / (2 v)) / sqrt(2 pi v)

before the softmax, v = 1. Parent ignoring: in training, a row of d is 1 with a probability q. ``K``
syntactic heads are the first of ``N``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor
from transformers import PreTrainedModel

from syntax.options import check_range
from syntax.variant import Variant, is_released
from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.attention import LayerSyntax, check_reads_syntax
from trainer.nn.encoder import Encoder
from trainer.nn.selfcheck import check_reads_scores
from trainer.nn.stock import chosen_layers, new_encoder, run_encoder
from trainer.systems.pascal.options import PARENT_POSITIONS, PascalOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class PascalEncoder(Encoder):
    """States of the pieces, with parent-scaled heads in chosen layers."""

    gives: ClassVar[frozenset[str]] = frozenset({"hidden_states", "attentions"})

    options: PascalOptions

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        options, stock = self.options, config.encoder_config()
        self.width = int(stock.hidden_size)
        self.heads, self.layers = int(stock.num_attention_heads), int(stock.num_hidden_layers)
        check_range("model.syntax_heads", options.syntax_heads, 1, self.heads)
        self.scaled_layers = frozenset(
            chosen_layers("model.syntax_layers", options.syntax_layers, self.layers)
        )
        self.encoder = pretrained if pretrained is not None else new_encoder(config)

    @property
    def stock(self) -> PreTrainedModel:
        return self.encoder

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        if self.options.use_syntax:
            check_reads_syntax(self.encoder.config._attn_implementation)
            options["syntax"] = self.syntax(batch.extra(PARENT_POSITIONS))
        output = run_encoder(self.encoder, batch, **options)
        return SyntaxEncoding(
            last_hidden_state=output.last_hidden_state,
            hidden_states=output.get("hidden_states"),
            attentions=output.get("attentions"),
        )

    def syntax(self, parents_BL: Tensor) -> list[LayerSyntax | None]:
        """The factors of the layers' scores; parents are ignored in each layer anew."""
        density_BLL = parent_density(parents_BL, self.options.variance)
        ignored = self.options.parent_ignoring if self.training else 0.0
        found: list[LayerSyntax | None] = [None] * self.layers
        for layer in sorted(self.scaled_layers):
            factor_BKLL = density_BLL[:, None].expand(-1, self.options.syntax_heads, -1, -1)
            if ignored:
                shape = (*factor_BKLL.shape[:3], 1)
                drawn_BKL1 = torch.rand(shape, device=parents_BL.device) < ignored
                factor_BKLL = factor_BKLL.masked_fill(drawn_BKL1, 1.0)
            found[layer] = LayerSyntax(
                factor_BKLL=placed(factor_BKLL, self.heads, self.options.scaled)
            )
        return found

    def check_attention(self) -> None:
        if self.options.use_syntax:
            check_reads_scores(self.encoder)


def parent_density(parents_BL: Tensor, variance: float = 1.0) -> Tensor:
    """Normal density around each position's parent; 1 if that is below 0. (B, L, L), float32."""
    place_L = torch.arange(parents_BL.shape[1], device=parents_BL.device)
    squares_BLL = (place_L - parents_BL.float()[:, :, None]).square()
    density_BLL = (-squares_BLL / (2 * variance)).exp() / math.sqrt(2 * math.pi * variance)
    return density_BLL.masked_fill((parents_BL < 0)[:, :, None], 1.0)


def placed(factor_BKLL: Tensor, heads: int, variant: Variant = "as_published") -> Tensor:
    """The factors of the first K heads, (B, K, L, L); as released, of all heads, (B, N, L, L).

    The release flattens examples and heads with the heads inside, and multiplies the last K B of
    the B N rows.
    """
    if not is_released(variant):
        return factor_BKLL
    B, K, L, _ = factor_BKLL.shape
    ones = factor_BKLL.new_ones((heads - K) * B, L, L)
    return torch.cat([ones, factor_BKLL.flatten(0, 1)]).view(B, heads, L, L)
