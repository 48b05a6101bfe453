"""Layers between an encoder and a head that reads words: LSTMs or a transformer.

Letters in shapes: ``B`` sequences, ``W`` words, ``D`` width, ``H`` hidden width of one direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.nn.biaffine import keep_torch_weights, states_at

Module = TypeVar("Module", bound=nn.Module)
Given = ParamSpec("Given")
Found = TypeVar("Found")


def in_full_precision(
    method: Callable[Concatenate[Module, Given], Found],
) -> Callable[Concatenate[Module, Given], Found]:
    """Let a method of a module compute as precisely as its weights, under autocast, too.

    Not every processor has an LSTM in half precision (oneDNN's asks for AVX-512), and what a state
    loses to rounding at one step is missing at all steps after it.
    """

    @wraps(method)
    def full(self: Module, /, *given: Given.args, **named: Given.kwargs) -> Found:
        weight = next(self.parameters())
        precise: Any = [
            one.to(weight.dtype) if isinstance(one, Tensor) and one.is_floating_point() else one
            for one in given
        ]
        with torch.autocast(weight.device.type, enabled=False):
            return method(self, *precise, **named)

    return full


class BiLstm(nn.Module):
    """LSTMs in both directions; padding changes nothing.

    The backward half reads each sequence turned round: packed sequences cannot be exported.
    """

    def __init__(self, width: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        sizes = [width, *[2 * hidden] * (layers - 1)]
        self.forwards = nn.ModuleList(nn.LSTM(size, hidden, batch_first=True) for size in sizes)
        self.backwards = nn.ModuleList(nn.LSTM(size, hidden, batch_first=True) for size in sizes)
        self.dropout = nn.Dropout(dropout)
        self.width = 2 * hidden
        keep_torch_weights(self)

    @in_full_precision
    def forward(self, states_BWD: Tensor, real_BW: Tensor) -> Tensor:
        """States of words in context, (B, W, 2 * hidden); words come before all padding."""
        turned_BW = _turned(real_BW)
        for ahead, back in zip(self.forwards, self.backwards, strict=True):
            dropped_BWD = self.dropout(states_BWD)
            ahead_BWD, _ = ahead(dropped_BWD)
            back_BWD, _ = back(states_at(dropped_BWD, turned_BW))
            states_BWD = torch.cat([ahead_BWD, states_at(back_BWD, turned_BW)], dim=2)
        return states_BWD


class HighwayLstm(nn.Module):
    """Highway LSTMs in both directions with recurrent dropout, as in AllenNLP.

    Zhang et al. (2016), "Highway Long Short-Term Memory RNNs for Distant Speech Recognition", and
    He et al. (2017), "Deep Semantic Role Labeling", section 2.1. Slower than `BiLstm`.

    Args:
        dropout: Of the input of the first layer.
        recurrent_dropout: Of the state that each word gives the next, which is the output, too: one
            mask for all words of a sequence in a layer and direction (Gal and Ghahramani 2016).
    """

    def __init__(
        self, width: int, hidden: int, layers: int, dropout: float, recurrent_dropout: float
    ) -> None:
        super().__init__()
        sizes = [width, *[2 * hidden] * (layers - 1)]
        self.forwards, self.backwards = (
            nn.ModuleList(HighwayLayer(size, hidden, recurrent_dropout) for size in sizes)
            for _ in range(2)
        )
        self.dropout = nn.Dropout(dropout)
        self.width = 2 * hidden

    @in_full_precision
    def forward(self, states_BWD: Tensor, real_BW: Tensor) -> Tensor:
        turned_BW, states_BWD = _turned(real_BW), self.dropout(states_BWD)
        for ahead, back in zip(self.forwards, self.backwards, strict=True):
            back_BWH = states_at(back(states_at(states_BWD, turned_BW)), turned_BW)
            states_BWD = torch.cat([ahead(states_BWD), back_BWH], dim=2)
        return states_BWD


class HighwayLayer(nn.Module):
    """One direction of one layer; it reads from the first word to the last.

    With x the input, h the state of the word before, and c its cell: i, f, o, r = sigmoid(W x + U h
    + b), m = tanh(W x + U h + b), c' = i m + f c, h' = r o tanh(c') + (1 - r) (W x + b), each with
    weights of its own. He et al. (2017), equations 2 to 8; the last summand has no U.
    """

    own_initial_weights = True

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.of_input = nn.Linear(width, 6 * hidden)  # i, f, m, o, r, and what r lets through
        self.of_state = nn.Linear(hidden, 5 * hidden)
        self.dropout, self.hidden = dropout, hidden
        keep_torch_weights(self)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw orthogonal weights for each gate; gates begin by keeping the cell (f has bias 1)."""
        for part in (self.of_input, self.of_state):
            for gate in torch.split(part.weight, self.hidden):
                nn.init.orthogonal_(gate)
        nn.init.zeros_(self.of_state.bias)
        nn.init.ones_(self.of_state.bias[self.hidden : 2 * self.hidden])

    def forward(self, states_BWD: Tensor) -> Tensor:
        """States of the words. *Shape:* (B, W, H)."""
        given_WBG = self.of_input(states_BWD).transpose(0, 1)
        mask_BH = given_WBG.new_ones(given_WBG.shape[1], self.hidden)
        mask_BH = F.dropout(mask_BH, self.dropout, self.training)
        state_BH = cell_BH = torch.zeros_like(mask_BH)
        found = []
        for given_BG in given_WBG.unbind():
            gates_BG, through_BH = torch.split(given_BG, [5 * self.hidden, self.hidden], dim=1)
            i_BH, f_BH, m_BH, o_BH, r_BH = (gates_BG + self.of_state(state_BH)).chunk(5, dim=1)
            cell_BH = i_BH.sigmoid() * m_BH.tanh() + f_BH.sigmoid() * cell_BH
            out_BH = o_BH.sigmoid() * cell_BH.tanh()
            state_BH = torch.lerp(through_BH, out_BH, r_BH.sigmoid()) * mask_BH
            found.append(state_BH)
        return torch.stack(found, dim=1) if found else mask_BH[:, None][:, :0]


class SharedDropout(nn.Module):
    """Dropout with one mask for all words of a sequence (Gal and Ghahramani 2016)."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, states_BWD: Tensor) -> Tensor:
        mask_B1D = torch.ones_like(states_BWD[:, :1])
        return states_BWD * F.dropout(mask_B1D, self.rate, self.training)


class WordTransformer(nn.Module):
    """Layers of a transformer over words, with sinusoidal positions (Vaswani et al. 2017).

    Sines come before cosines, over rates from 1 to 1e-4, as in AllenNLP, the base of MicroBERT.
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
        states_BWD = states_BWD + _halved_sinusoids(states_BWD.shape[1], self.width).to(states_BWD)
        # A sequence without words would attend to nothing, which is NaN; it may attend to all.
        hidden_BW = ~real_BW & real_BW.any(1, keepdim=True)
        for layer in self.layers:
            states_BWD = layer(states_BWD, src_key_padding_mask=hidden_BW)
        return states_BWD


def sinusoids(count: int, width: int) -> Tensor:
    """Sinusoidal positions (Vaswani et al. 2017, section 3.5). *Shape:* (count, width), float32."""
    places = torch.arange(count)[:, None]
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    found = torch.zeros(count, width)
    found[:, 0::2] = torch.sin(places * rates)
    found[:, 1::2] = torch.cos(places * rates)[:, : width // 2]
    return found


def _halved_sinusoids(count: int, width: int) -> Tensor:
    """Sines, then cosines, then 0 in an odd width. *Shape:* (count, width), float32."""
    half = width // 2
    rates = torch.exp(torch.linspace(0, -math.log(10_000.0), half))
    angles = torch.arange(count)[:, None] * rates
    return F.pad(torch.cat([angles.sin(), angles.cos()], dim=1), (0, width % 2))


def _turned(real_BW: Tensor) -> Tensor:
    """For each place the word that stands there when every sequence is read backwards."""
    places_W = torch.arange(real_BW.shape[1], device=real_BW.device)
    return torch.where(real_BW, real_BW.sum(1, keepdim=True) - 1 - places_W, places_W)
