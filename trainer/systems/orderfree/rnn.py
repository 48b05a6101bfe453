"""Bidirectional LSTMs with variational dropout (Gal and Ghahramani 2016).

A sentence has one mask of the input and one of the recurrent states of each LSTM, at all words
alike, and the same for all four gates.

Letters in shapes: ``T`` the two directions, ``B`` sentences, ``W`` positions, ``D`` width, ``H``
width of a direction, ``G`` the four gates' (4 H).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.nn.biaffine import keep_torch_weights


class VariationalBiLstm(nn.Module):
    """LSTMs in both directions; padding changes nothing.

    The backward half reads each sentence turned round. Where masks are drawn, steps are taken one
    by one, of both directions at once: torch's own LSTM masks no recurrent states.

    Args:
        width: Of the input.
        hidden: Of each direction.
        layers: How many.
        dropout: Of input and recurrent states.

    Attributes:
        width: Of the output.
    """

    def __init__(self, width: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        sizes = [width, *[2 * hidden] * (layers - 1)]
        self.forwards = nn.ModuleList(nn.LSTM(size, hidden, batch_first=True) for size in sizes)
        self.backwards = nn.ModuleList(nn.LSTM(size, hidden, batch_first=True) for size in sizes)
        self.dropout, self.width = dropout, 2 * hidden
        keep_torch_weights(self)

    def forward(self, states_BWD: Tensor, real_BW: Tensor) -> Tensor:
        """The states of the words with what is around them. *Shape:* (B, W, width).

        Args:
            states_BWD: Of the words.
            real_BW: Where a word is; words come before padding. bool.
        """
        counts_B1 = real_BW.sum(1, keepdim=True)
        places_W = torch.arange(states_BWD.shape[1], device=states_BWD.device)
        turned_BW = torch.where(real_BW, counts_B1 - 1 - places_W, places_W)
        for ahead, back in zip(self.forwards, self.backwards, strict=True):
            both_TBWD = torch.stack([states_BWD, _taken(states_BWD, turned_BW)])
            if self.training and self.dropout:
                ahead_BWH, back_BWH = self._stepwise(both_TBWD, [ahead, back])
            else:
                (ahead_BWH, _), (back_BWH, _) = ahead(both_TBWD[0]), back(both_TBWD[1])
            states_BWD = torch.cat([ahead_BWH, _taken(back_BWH, turned_BW)], dim=2)
        return states_BWD

    def _stepwise(self, both_TBWD: Tensor, cells: list[nn.Module]) -> Tensor:
        """The states of both directions, with masks. *Shape:* (T, B, W, H)."""
        T, B, W, D = both_TBWD.shape
        hidden = self.width // 2
        inputs_TBD = F.dropout(both_TBWD.new_ones(T, B, D), self.dropout)
        recurrent_TBH = F.dropout(both_TBWD.new_ones(T, B, hidden), self.dropout)
        weights = [
            torch.stack([getattr(cell, name) for cell in cells])
            for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        ]
        input_TGD, recurrent_TGH, *biases = weights
        masked_TND = (both_TBWD * inputs_TBD[:, :, None]).flatten(1, 2)
        bias_T1G = (biases[0] + biases[1])[:, None]
        gates_TBWG = torch.baddbmm(bias_T1G, masked_TND, input_TGD.transpose(1, 2))
        gates_TBWG = gates_TBWG.unflatten(1, (B, W))
        state_TBH = cell_TBH = both_TBWD.new_zeros(T, B, hidden)
        recurrent_THG, found = recurrent_TGH.transpose(1, 2), []
        for step_TBG in gates_TBWG.unbind(2):
            step_TBG = torch.baddbmm(step_TBG, state_TBH * recurrent_TBH, recurrent_THG)
            enter, forget, new, leave = step_TBG.chunk(4, dim=2)
            cell_TBH = forget.sigmoid() * cell_TBH + enter.sigmoid() * new.tanh()
            state_TBH = leave.sigmoid() * cell_TBH.tanh()
            found.append(state_TBH)
        return torch.stack(found, dim=2)


def _taken(states_BWD: Tensor, places_BW: Tensor) -> Tensor:
    return states_BWD.gather(1, places_BW[:, :, None].expand_as(states_BWD))
