"""Classifiers that tell the language of words, or of sentences, by their states.

Letters in shapes: ``B`` sequences, ``W`` words, ``D`` width of the states, ``H`` hidden width,
``C`` scores.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, cast

import torch
from torch import Tensor, nn

from syntax.variant import Variant, is_released
from trainer.nn.biaffine import keep_torch_weights

Level: TypeAlias = Literal["word", "sentence"]
"""The unit that is classified: each word, or the mean over the words of a sequence."""

_CONVOLVED: Final = 128
_BLOCKS: Final = 3
_PART: Final = 0.3
"""Factor of what a block adds to its input."""


class Discriminator(nn.Module):
    """Linear maps of each word's state, or of their mean, with tanh between them."""

    def __init__(
        self, width: int, scores: int, hidden: tuple[int, ...] = (256, 128), level: Level = "word"
    ) -> None:
        super().__init__()
        self.level = level
        sizes, layers = (width, *hidden), list[nn.Module]()
        for before, after in zip(sizes, hidden, strict=False):
            layers += [nn.Linear(before, after), nn.Tanh()]
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-1], scores))
        keep_torch_weights(self)

    def forward(self, states_BWD: Tensor, real_BW: Tensor) -> tuple[Tensor, Tensor]:
        """Scores, and which of them count: (B, W, C) and bool (B, W); W is 1 of sentences."""
        read_BWD = self.read(states_BWD, real_BW)
        if self.level == "sentence":
            counts_B11 = real_BW.sum(1)[:, None, None]
            sums_B1D = read_BWD.masked_fill(~real_BW[..., None], 0.0).sum(1, keepdim=True)
            read_BWD, real_BW = sums_B1D / counts_B11.clamp(min=1), counts_B11[..., 0] > 0
        return self.layers(read_BWD), real_BW

    def read(self, states_BWD: Tensor, real_BW: Tensor) -> Tensor:  # noqa: ARG002
        """The input of the linear maps: the state of each word. *Shape:* (B, W, D)."""
        return states_BWD


class StrongDiscriminator(Discriminator):
    """Three convolutional blocks over the words, then a linear map.

    A block is ``x + .3 conv5(relu(conv5(relu(x))))``; as released, ``relu(x)`` stands for the first
    x, too (``residual``), as it works in place. A position without a word is 0 before each
    convolution, so that it tells its neighbours nothing.
    """

    def __init__(
        self, width: int, scores: int, level: Level = "word", residual: Variant = "as_published"
    ) -> None:
        H = _CONVOLVED
        super().__init__(H, scores, (), level)
        self.residual = residual
        self.narrow = nn.Conv1d(width, H, 1)
        self.blocks = nn.ModuleList(
            nn.ModuleList(nn.Conv1d(H, H, 5, padding=2) for _ in range(2)) for _ in range(_BLOCKS)
        )
        keep_torch_weights(self)

    def read(self, states_BWD: Tensor, real_BW: Tensor) -> Tensor:
        """A word's state after the blocks, of up to twelve neighbours on each side. (B, W, H)."""
        real_B1W = real_BW[:, None].to(states_BWD.dtype)
        x_BHW = self.narrow(states_BWD.transpose(1, 2))
        for first, second in cast(Iterable[tuple[nn.Conv1d, nn.Conv1d]], self.blocks):
            positive_BHW = torch.relu(x_BHW)
            hidden_BHW = torch.relu(first(positive_BHW * real_B1W))
            kept_BHW = positive_BHW if is_released(self.residual) else x_BHW
            x_BHW = kept_BHW + _PART * second(hidden_BHW * real_B1W)
        read_BWH: Tensor = x_BHW.transpose(1, 2)
        return read_BWH
