"""States of words: from those of pieces, from a mean of layers, and from characters.

Letters in shapes: ``B`` sequences, ``L`` positions, ``W`` words, ``C`` characters of a word, ``N``
words of all sequences, ``K`` layers, ``D`` width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from trainer.nn.context import in_full_precision


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


CHARACTER: Final = 50
"""Width of a character's embedding, as in supar."""


class CharLstm(nn.Module):
    """The last state of each direction over the characters of a word (Lample et al. 2016).

    Known characters have ids from 2 on; 1 is any other, and 0 comes behind the last.
    """

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(count + 2, CHARACTER)
        self.lstm = nn.LSTM(CHARACTER, width // 2, batch_first=True, bidirectional=True)
        self.width = width

    @in_full_precision
    def forward(self, chars_BWC: Tensor) -> Tensor:
        """The states of words, zeros of one without characters. *Shape:* (B, W, D)."""
        real_BW = (chars_BWC > 0).any(2)
        chars_NC = chars_BWC[real_BW]
        states_BWD = self.embed.weight.new_zeros(*real_BW.shape, self.width)
        if not len(chars_NC):
            return states_BWD
        counts_N = (chars_NC > 0).sum(1).cpu()
        packed = pack_padded_sequence(
            self.embed(chars_NC), counts_N, batch_first=True, enforce_sorted=False
        )
        _, (last_2ND, _) = self.lstm(packed)
        return states_BWD.masked_scatter(real_BW[:, :, None], torch.cat([*last_2ND], dim=1))
