"""The mean loss of an evaluation, over labels rather than over batches."""

from __future__ import annotations

from torch import Tensor


class MeanLoss:
    """Weights the mean loss of each batch by its labels; reads the device once, at the end."""

    def __init__(self) -> None:
        self._sums: list[Tensor] = []
        self._counts: list[Tensor] = []

    def add(self, mean: Tensor, count: Tensor) -> None:
        """Take the mean loss over ``count`` labels; a NaN over no labels has no weight."""
        self._sums.append(mean.detach().nan_to_num() * count)
        self._counts.append(count)

    def mean(self) -> float:
        """The mean over all labels; 0 without any."""
        total = sum(int(count) for count in self._counts)
        return sum(float(part) for part in self._sums) / total if total else 0.0
