"""Some rows of the attention weights of an encoder's last layer, without all of them.

Losses such as `trainer.objectives.phrase` compare what a few positions attend to. The attention
that computes no weights (SDPA) does not give them, and transformers' ``output_attentions``
forbids it: then every layer writes out N L^2 weights for each example and keeps them for the
gradients. Here the attention function hands out queries, keys and mask of the last layer, which are
there anyway, and only the rows in question are computed again.

For R rows of an example that takes 2 N R L D multiplications and additions for the scores, and
keeps N R L weights, in place of 2 N L^2 D and N L^2: the share R / L of one layer's, and nothing of
the other layers'. With ``output_attentions`` an encoder of 12 layers and 12 heads on 512 pieces
keeps 151 MB of float32 weights for each example; 50 rows are 1.2 MB.

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

    It goes down to the layers as the keyword ``keeper`` (`trainer.nn.attention`). Each writes over
    what the one below kept, so that no layer needs to know its number.
    """

    def __init__(self) -> None:
        self._layer: LayerAttention | None = None

    def keep(self, layer: LayerAttention) -> None:
        """Take what a layer attends with, in place of the one before."""
        self._layer = layer

    @property
    def layer(self) -> LayerAttention:
        """The queries and keys of the last layer."""
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
        """Weights of the last layer at these positions, in float32 whatever the layer computes in.

        They are those of the layer itself: with its biases of syntax and, where it attends locally
        too, the mix of both attentions.

        Args:
            positions_BR: int64, R of each example.
            heads: Which heads; all when left out.
            dropped: Drop weights as the layer does in training. Which ones is drawn again, because
                fused attention does not tell which it dropped.

        Returns:
            *Shape:* (B, N, R, L).
        """
        layer, at_BR = self.layer, positions_BR
        query, key, mask = layer.query, layer.key, layer.mask
        if heads is not None:
            query, key = query[:, list(heads)], key[:, list(heads)]
            if mask is not None and mask.shape[1] > 1:
                mask = mask[:, list(heads)]
        with torch.autocast(at_BR.device.type, enabled=False):
            weights_BNRL = attention_weights(
                _rows_of(query, at_BR, 2).float(),
                key.float(),
                _mask_rows(mask, at_BR),
                _local_rows(layer.local, at_BR),
                layer.scaling,
            )
        return F.dropout(weights_BNRL, layer.dropout, dropped)


def _rows_of(states: Tensor, at_BR: Tensor, dim: int) -> Tensor:
    """Entries of an axis that differ by example, the first axis."""
    shape = [len(at_BR), *[1] * (states.dim() - 1)]
    shape[dim] = at_BR.shape[1]
    sizes = [*states.shape]
    sizes[dim] = at_BR.shape[1]
    return states.gather(dim, at_BR.view(shape).expand(sizes))


def _mask_rows(mask: Tensor | None, at_BR: Tensor) -> Tensor | None:
    """The rows of a mask that is broadcast to (B, N, L, L)."""
    if mask is None or mask.shape[-2] == 1:
        return mask
    rows = _rows_of(mask.expand(len(at_BR), -1, -1, -1), at_BR, 2)
    return rows if rows.dtype == torch.bool else rows.float()


def _local_rows(local: LocalAttention | None, at_BR: Tensor) -> LocalAttention | None:
    if local is None:
        return None
    mask_BRL = _rows_of(local.mask_BLL, at_BR, 1)
    return LocalAttention(mask_BRL, _rows_of(local.weight_BL, at_BR, 1).float())
