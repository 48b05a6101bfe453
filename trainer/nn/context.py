"""What is between an encoder and a head that reads words: an LSTM, or layers of a transformer.

Letters in shapes: ``B`` sequences, ``W`` words, ``D`` width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from trainer.nn.biaffine import keep_torch_weights


class BiLstm(nn.Module):
    """LSTMs in both directions; padding changes nothing.

    The backward half reads each sequence turned round, so that it needs no packed sequences, which
    cannot be exported.

    Args:
        width: Of the input.
        hidden: Of each direction.
        layers: How many.
        dropout: Of the input of each layer.
    """

    def __init__(self, width: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        sizes = [width, *[2 * hidden] * (layers - 1)]
        self.forwards = nn.ModuleList(nn.LSTM(size, hidden, batch_first=True) for size in sizes)
        self.backwards = nn.ModuleList(nn.LSTM(size, hidden, batch_first=True) for size in sizes)
        self.dropout = nn.Dropout(dropout)
        self.width = 2 * hidden
        keep_torch_weights(self)

    def forward(self, states_BWD: Tensor, real_BW: Tensor) -> Tensor:
        """The states of words with what is around them. *Shape:* (B, W, 2 * hidden).

        Args:
            states_BWD: Of the words.
            real_BW: Where a word is; the words come before all padding. bool.
        """
        counts_B1 = real_BW.sum(1, keepdim=True)
        places_W = torch.arange(states_BWD.shape[1], device=states_BWD.device)
        turned_BW = torch.where(real_BW, counts_B1 - 1 - places_W, places_W)
        for ahead, back in zip(self.forwards, self.backwards, strict=True):
            dropped_BWD = self.dropout(states_BWD)
            ahead_BWD, _ = ahead(dropped_BWD)
            back_BWD, _ = back(_taken(dropped_BWD, turned_BW))
            states_BWD = torch.cat([ahead_BWD, _taken(back_BWD, turned_BW)], dim=2)
        return states_BWD


class WordTransformer(nn.Module):
    """Layers of a transformer over words, with sinusoidal positions (Vaswani et al. 2017).

    Args:
        width: Of input and output.
        feed_forward: Of the feed-forward part.
        layers, heads: How many.
        dropout: Of the layers.
    """

    def __init__(
        self, width: int, feed_forward: int, layers: int, heads: int, dropout: float
    ) -> None:
        super().__init__()
        # One by one: nn.TransformerEncoder would give all layers the same initial weights.
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, feed_forward, dropout, batch_first=True)
            for _ in range(layers)
        )
        self.width = width
        keep_torch_weights(self)

    def forward(self, states_BWD: Tensor, real_BW: Tensor) -> Tensor:
        """The states of words with what is around them; arguments as of `BiLstm`."""
        states_BWD = states_BWD + sinusoids(states_BWD.shape[1], self.width).to(states_BWD)
        # A sequence without words would attend to nothing, which is NaN; it may attend to all.
        hidden_BW = ~real_BW & real_BW.any(1, keepdim=True)
        for layer in self.layers:
            states_BWD = layer(states_BWD, src_key_padding_mask=hidden_BW)
        return states_BWD


def sinusoids(count: int, width: int) -> Tensor:
    """Positions as sines and cosines of falling frequency (Vaswani et al. 2017, section 3.5).

    *Shape:* (count, width), float32.
    """
    places = torch.arange(count)[:, None]
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    found = torch.zeros(count, width)
    found[:, 0::2] = torch.sin(places * rates)
    found[:, 1::2] = torch.cos(places * rates)[:, : width // 2]
    return found


def _taken(states_BWD: Tensor, places_BW: Tensor) -> Tensor:
    return states_BWD.gather(1, places_BW[:, :, None].expand_as(states_BWD))
