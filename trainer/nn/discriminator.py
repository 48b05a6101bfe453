"""Classifiers that tell the language of words by their states.

Letters in shapes: ``B`` sequences, ``W`` words, ``D`` width of the states, ``H`` hidden width,
``C`` scores.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

import torch
from torch import Tensor, nn

from trainer.nn.biaffine import keep_torch_weights

_CONVOLVED: Final = 128
_BLOCKS: Final = 3
_PART: Final = 0.3
"""Of what a block adds to its input."""


def new_discriminator(size: str, width: int, scores: int) -> nn.Module:
    """One of the three discriminators of the release.

    Args:
        size: ``weak``, ``not_so_weak`` or ``strong``.
        width: Of the states.
        scores: Of each word.

    Returns:
        A module from states, (B, W, D), and where a word is, bool (B, W), to scores, (B, W, C).
    """
    if size == "strong":
        return StrongDiscriminator(width, scores)
    return WordDiscriminator(width, scores, () if size == "weak" else (256, 128))


class WordDiscriminator(nn.Module):
    """Linear maps of each word's state, with tanh between them.

    Args:
        width: Of the states.
        scores: Of each word.
        hidden: Widths between them.
    """

    def __init__(self, width: int, scores: int, hidden: tuple[int, ...] = (256, 128)) -> None:
        super().__init__()
        sizes, layers = (width, *hidden), list[nn.Module]()
        for before, after in zip(sizes, hidden, strict=False):
            layers += [nn.Linear(before, after), nn.Tanh()]
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-1], scores))
        keep_torch_weights(self)

    def forward(self, states_BWD: Tensor, real_BW: Tensor) -> Tensor:  # noqa: ARG002
        """Scores; a word's are of its own state alone. *Shape:* (B, W, C)."""
        scores_BWC: Tensor = self.layers(states_BWD)
        return scores_BWC


class StrongDiscriminator(nn.Module):
    """Convolutions over the words: ``x + .3 conv5(relu(conv5(relu(x))))``, three times.

    A position without a word is 0 before each convolution, so that it tells its neighbours
    nothing.

    Args:
        width: Of the states.
        scores: Of each word.
    """

    def __init__(self, width: int, scores: int) -> None:
        super().__init__()
        H = _CONVOLVED
        self.narrow = nn.Conv1d(width, H, 1)
        self.blocks = nn.ModuleList(
            nn.ModuleList(nn.Conv1d(H, H, 5, padding=2) for _ in range(2)) for _ in range(_BLOCKS)
        )
        self.output = nn.Linear(H, scores)
        keep_torch_weights(self)

    def forward(self, states_BWD: Tensor, real_BW: Tensor) -> Tensor:
        """Scores; a word's are of up to twelve neighbours on each side. *Shape:* (B, W, C)."""
        real_B1W = real_BW[:, None].to(states_BWD.dtype)
        x_BHW = self.narrow(states_BWD.transpose(1, 2))
        for first, second in cast(Iterable[tuple[nn.Conv1d, nn.Conv1d]], self.blocks):
            hidden_BHW = first(torch.relu(x_BHW) * real_B1W)
            x_BHW = x_BHW + _PART * second(torch.relu(hidden_BHW) * real_B1W)
        scores_BWC: Tensor = self.output(x_BHW.transpose(1, 2))
        return scores_BWC
