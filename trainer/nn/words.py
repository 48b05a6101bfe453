"""States of words from those of pieces.

Letters in shapes: ``B`` sequences, ``L`` positions, ``W`` words, ``D`` width.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn


class WordStates(nn.Module):
    """The state of each word: its first piece's, or the mean of its pieces'.

    A word without a piece has the state of another word of its sentence
    (`syntax.batches.words.WordLayout`) plus a learned vector, so that the two differ.
    """

    own_initial_weights = True

    def __init__(self, width: int, pieces: Literal["first", "mean"]) -> None:
        super().__init__()
        self.first = pieces == "first"
        self.pieceless_D = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.pieceless_D, std=0.02)

    def forward(self, states_BLD: Tensor, pieces_BL: Tensor, sources_BW: Tensor) -> Tensor:
        """The states of words, (B, W, D); zeros of one that has neither pieces nor another word's.

        ``pieces_BL`` has the word of each position, -1 for none; ``sources_BW`` the word that tells
        the state of each word, mostly itself.
        """
        words_W = torch.arange(sources_BW.shape[1], device=pieces_BL.device)
        owned_BWL = pieces_BL[:, None, :] == words_W[None, :, None]
        if self.first:
            owned_BWL = owned_BWL & (owned_BWL.cumsum(2) == 1)
        weights_BWL = owned_BWL.to(states_BLD.dtype)
        weights_BWL = weights_BWL / weights_BWL.sum(2, keepdim=True).clamp(min=1)
        words_BWD = weights_BWL @ states_BLD
        told_BWD = words_BWD.gather(1, sources_BW[:, :, None].expand_as(words_BWD))
        pieceless_BW = sources_BW != words_W
        return torch.where(pieceless_BW[:, :, None], told_BWD + self.pieceless_D, told_BWD)
