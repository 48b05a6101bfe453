"""From syntax states to the biases of each layer's attention."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from syntax.variant import Variant
from trainer.nn.attention import EncoderSyntax, LayerSyntax


class AttentionBias(nn.Module):
    """Two linear maps for the first heads of chosen layers: of queries or values, and of keys.

    Published (Ahmad et al. 2021, section 2.3): ``Attention(Q + g W_Q, K + g W_K, V)``. Released:
    ``Attention(Q, K + g W_K + b_K, V + g W_V + b_V)``.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        head_size: int,
        layers: Sequence[int],
        encoder_layers: int,
        variant: Variant = "as_published",
    ) -> None:
        super().__init__()
        self.heads, self.encoder_layers, self.variant = heads, encoder_layers, variant
        constant = variant == "as_released"
        names = [str(layer) for layer in sorted(set(layers))]
        self.key = nn.ModuleDict(
            {name: nn.Linear(width, heads * head_size, bias=constant) for name in names}
        )
        self.other = nn.ModuleDict(
            {name: nn.Linear(width, heads * head_size, bias=constant) for name in names}
        )

    def forward(self, states_BLG: Tensor) -> EncoderSyntax:
        return [self._layer(str(layer), states_BLG) for layer in range(self.encoder_layers)]

    def _layer(self, name: str, states_BLG: Tensor) -> LayerSyntax | None:
        if name not in self.key:
            return None
        key_BKLD = self._split(self.key[name](states_BLG))
        other_BKLD = self._split(self.other[name](states_BLG))
        if self.variant == "as_released":
            return LayerSyntax(key_BKLD=key_BKLD, value_BKLD=other_BKLD)
        return LayerSyntax(key_BKLD=key_BKLD, query_BKLD=other_BKLD)

    def _split(self, states: Tensor) -> Tensor:
        B, L, _ = states.shape
        return states.view(B, L, self.heads, -1).transpose(1, 2)
