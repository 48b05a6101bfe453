"""A learned mean of an encoder's layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ScalarMix(nn.Module):
    """``gamma * sum_k softmax(w)_k h_k``, at first the plain mean (Peters et al. 2018, eq. 1)."""

    own_initial_weights = True

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weights_K = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(()))

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.weights_K)
        nn.init.ones_(self.gamma)

    def forward(self, layers: Sequence[Tensor]) -> Tensor:
        weights_K = self.weights_K.softmax(0)
        mixed = sum(weight * layer for weight, layer in zip(weights_K, layers, strict=True))
        assert isinstance(mixed, Tensor)
        return self.gamma * mixed
