"""Some rows of the attention weights of an encoder's last layer, without all of them.

Losses such as `trainer.objectives.phrase` compare what a few positions attend to. SDPA gives no
weights, and with ``output_attentions`` every layer writes out N L^2 weights for each example and
keeps them for the gradients. Here the attention function hands out queries, keys and mask of the
last layer, and only R rows are computed again: 2 N R L D multiplications and additions, and N R L
weights. An encoder of 12 layers and 12 heads on 512 pieces keeps 1.2 MB of float32 weights for 50
rows of an example, and 151 MB with ``output_attentions``.

Letters in shapes: ``B`` examples, ``N`` heads, ``L`` wordpieces, ``R`` rows of an example, ``D``
head size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from syntax.errors import SpecError
from trainer.nn.attention import LayerAttention, LocalAttention, attention_weights


class AttentionRows:
    """Keeps what the last layer attends with, and computes rows of its weights.

    Each layer gets it as the keyword ``recorder``, and writes over what the one below kept.
    """

    def __init__(self) -> None:
        self._layer: LayerAttention | None = None

    def record(self, layer: LayerAttention) -> None:
        self._layer = layer

    @property
    def layer(self) -> LayerAttention:
        if self._layer is None:
            raise SpecError(
                "the encoder's layers do not hand out what they attend with, and an objective "
                "reads rows of attention weights; take an encoder such as BERT, XLM-R or ELECTRA, "
                "or take the objective out of the recipe"
            )
        return self._layer

    def weights(
        self, positions_BR: Tensor, *, heads: Sequence[int] | None = None, dropped: bool = False
    ) -> Tensor:
        """Weights of the last layer at R positions of each example. *Shape:* (B, N, R, L), float32.

        They include the layer's biases of syntax, and mix both attentions where it attends locally,
        too. ``dropped`` drops weights as the layer does in training, but draws again which ones:
        fused attention does not tell.
        """
        layer, at_BR = self.layer, positions_BR
        query, key, mask, local = layer.query, layer.key, layer.mask, layer.local
        if heads is not None:
            query, key = query[:, list(heads)], key[:, list(heads)]
            if mask is not None and mask.shape[1] > 1:
                mask = mask[:, list(heads)]
        with torch.autocast(at_BR.device.type, enabled=False):
            if mask is not None and mask.shape[-2] != 1:
                mask = _rows_of(mask.expand(len(at_BR), -1, -1, -1), at_BR, 2)
                mask = mask if mask.dtype == torch.bool else mask.float()
            if local is not None:
                mask_BRL = _rows_of(local.mask_BLL, at_BR, 1)
                local = LocalAttention(mask_BRL, _rows_of(local.weight_BL, at_BR, 1).float())
            rows_BNRD = _rows_of(query, at_BR, 2).float()
            weights_BNRL = attention_weights(rows_BNRD, key.float(), mask, local, layer.scaling)
        return F.dropout(weights_BNRL, layer.dropout, dropped)


def _rows_of(states: Tensor, at_BR: Tensor, dim: int) -> Tensor:
    """Entries of an axis that differ by example, the first axis."""
    shape = [len(at_BR), *[1] * (states.dim() - 1)]
    shape[dim] = at_BR.shape[1]
    sizes = [*states.shape]
    sizes[dim] = at_BR.shape[1]
    return states.gather(dim, at_BR.view(shape).expand(sizes))
