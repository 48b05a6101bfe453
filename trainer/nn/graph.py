"""Graph convolutions over the words of a tree.

Letters in shapes: ``B`` sequences, ``W`` words, ``D`` width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.variant import Variant, is_released
from trainer.nn.biaffine import keep_torch_weights


class GraphConvolutions(nn.Module):
    """Layers h'_i = ReLU(sum_j A_ij W h_j / d_i + b), with d_i the sum of A_ij over j.

    Zhang, Qi and Manning (2018, https://aclanthology.org/D18-1244), equation 2. As released b is
    added to the neighbours and to the word itself, and divided by d_i: 2 b / d_i.
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        layers: int,
        dropout: float,
        bias: Variant = "as_published",
    ) -> None:
        super().__init__()
        sizes = [width, *[hidden] * (layers - 1)]
        self.layers = nn.ModuleList(nn.Linear(size, hidden) for size in sizes)
        self.dropout, self.bias, self.width = nn.Dropout(dropout), bias, hidden
        keep_torch_weights(self)

    def forward(self, states_BWD: Tensor, edges_BWW: Tensor) -> Tensor:
        """Read ``edges_BWW``, bool, in which each word has itself as a neighbour."""
        shares_BWW = F.normalize(edges_BWW.to(states_BWD.dtype), p=1.0, dim=-1)
        times_BW1: Tensor | float = 1.0
        if is_released(self.bias):
            times_BW1 = 2 / edges_BWW.sum(-1, keepdim=True).clamp(min=1)
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, nn.Linear)
            read_BWD = shares_BWW @ (self.dropout(states_BWD) if number else states_BWD)
            states_BWD = torch.relu(F.linear(read_BWD, layer.weight) + times_BW1 * layer.bias)
        return states_BWD
