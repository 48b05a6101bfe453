"""The mean loss of an evaluation, over what was labelled rather than over batches."""

from __future__ import annotations

from torch import Tensor


class MeanLoss:
    """Adds up mean losses by how much each was the mean of; read off the device at the end."""

    def __init__(self) -> None:
        self._sums: list[Tensor] = []
        self._counts: list[Tensor] = []

    def add(self, mean: Tensor, count: Tensor) -> None:
        """Take the mean loss over ``count`` labels; that over none is 0/0 and weighs nothing."""
        self._sums.append(mean.detach().nan_to_num() * count)
        self._counts.append(count)

    def mean(self) -> float:
        """Over everything taken; 0 over nothing."""
        total = sum(int(count) for count in self._counts)
        return sum(float(part) for part in self._sums) / total if total else 0.0
