"""Bidirectional LSTMs with variational dropout (Gal and Ghahramani 2016).

A sentence has one mask of the input and one of the recurrent states of each LSTM, at all words and
for all gates alike. In shapes, ``T`` are directions, ``H`` their width, ``G`` the gates' (4 H).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.nn.biaffine import keep_torch_weights, states_at
from trainer.nn.context import in_full_precision


class VariationalBiLstm(nn.Module):
    """LSTMs in both directions; padding changes nothing.

    The backward half reads each sentence turned round. Where masks are drawn, steps are taken one
    by one, of both directions at once: torch's own LSTM masks no recurrent states.
    """

    def __init__(self, width: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        sizes = [width, *[2 * hidden] * (layers - 1)]
        self.forwards = nn.ModuleList(nn.LSTM(size, hidden, batch_first=True) for size in sizes)
        self.backwards = nn.ModuleList(nn.LSTM(size, hidden, batch_first=True) for size in sizes)
        self.dropout, self.width = dropout, 2 * hidden
        keep_torch_weights(self)

    @in_full_precision
    def forward(self, states_BWD: Tensor, real_BW: Tensor) -> Tensor:
        """The states of the words in context; words come before padding. *Shape:* (B, W, width)."""
        turned_BW = _turned(real_BW)
        for number in range(len(self.forwards)):
            if self.training and self.dropout:
                states_BWD, _ = self._stepwise(number, states_BWD, turned_BW)
                continue
            ahead_BWH, _ = self.forwards[number](states_BWD)
            back_BWH, _ = self.backwards[number](states_at(states_BWD, turned_BW))
            states_BWD = torch.cat([ahead_BWH, states_at(back_BWH, turned_BW)], dim=2)
        return states_BWD

    @in_full_precision
    def with_memory(self, states_BWD: Tensor, real_BW: Tensor) -> tuple[Tensor, Tensor]:
        """The states, and the memory of the last layer when each direction has read all words.

        *Shape:* (B, W, width), and (B, width): forwards beside backwards.
        """
        turned_BW, memories_TBWH = _turned(real_BW), states_BWD.new_zeros(0)
        for number in range(len(self.forwards)):
            states_BWD, memories_TBWH = self._stepwise(number, states_BWD, turned_BW)
        last_B = real_BW.sum(1).clamp(min=1) - 1
        ends_TBH = memories_TBWH[:, torch.arange(len(last_B), device=last_B.device), last_B]
        return states_BWD, torch.cat([*ends_TBH], dim=1)

    def _stepwise(
        self, number: int, states_BWD: Tensor, turned_BW: Tensor
    ) -> tuple[Tensor, Tensor]:
        """A layer's states (B, W, width), step by step, and memories (T, B, W, H) in that order."""
        cells = [self.forwards[number], self.backwards[number]]
        both_TBWD = torch.stack([states_BWD, states_at(states_BWD, turned_BW)])
        T, B, W, D = both_TBWD.shape
        hidden = self.width // 2
        inputs_TBD = F.dropout(both_TBWD.new_ones(T, B, D), self.dropout, self.training)
        recurrent_TBH = both_TBWD.new_ones(T, B, hidden)
        recurrent_TBH = F.dropout(recurrent_TBH, self.dropout, self.training)
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
        recurrent_THG, found, memories = recurrent_TGH.transpose(1, 2), [], []
        for step_TBG in gates_TBWG.unbind(2):
            step_TBG = torch.baddbmm(step_TBG, state_TBH * recurrent_TBH, recurrent_THG)
            enter, forget, new, leave = step_TBG.chunk(4, dim=2)
            cell_TBH = forget.sigmoid() * cell_TBH + enter.sigmoid() * new.tanh()
            state_TBH = leave.sigmoid() * cell_TBH.tanh()
            found.append(state_TBH)
            memories.append(cell_TBH)
        ahead_BWH, back_BWH = torch.stack(found, dim=2)
        both_BWD = torch.cat([ahead_BWH, states_at(back_BWH, turned_BW)], dim=2)
        return both_BWD, torch.stack(memories, dim=2)


def _turned(real_BW: Tensor) -> Tensor:
    """Position of the word at each place when sentences are turned round; padding stays."""
    counts_B1 = real_BW.sum(1, keepdim=True)
    places_W = torch.arange(real_BW.shape[1], device=real_BW.device)
    return torch.where(real_BW, counts_B1 - 1 - places_W, places_W)
