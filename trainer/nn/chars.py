"""States of words from their characters: the last ones of a bidirectional LSTM over them.

Letters in shapes: ``B`` sequences, ``W`` words, ``C`` characters of a word, ``N`` words of all
sequences, ``D`` width.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from trainer.nn.recurrent import in_full_precision

EMBEDDING: Final = 50
"""Width of a character's embedding, as in supar."""


class CharLstm(nn.Module):
    """The last state of each direction over the characters of a word (Lample et al. 2016).

    Known characters have ids from 2 on; 1 is any other, and 0 comes behind the last.
    """

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(count + 2, EMBEDDING)
        self.lstm = nn.LSTM(EMBEDDING, width // 2, batch_first=True, bidirectional=True)
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
