"""Scores of pairs of words, and what all biaffine parsers share around them.

Letters in shapes: ``B`` sequences, ``W`` dependents, ``H`` heads, ``I`` and ``J`` width of their
states, ``R`` relations, ``D`` width, ``C`` classes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.batches import IGNORE


class Biaffine(nn.Module):
    """``x U y``, where asked with linear terms of both: then a 1 is behind every state.

    Dozat and Manning (2017), equations 2 and 3. In mixed precision, too, scores are as precise as
    the weights: half precision has no number for a hidden one.

    Args:
        linear: Without linear terms each output has a constant alone.
        as_one: Draw the bilinear weights of all outputs as one tensor, and the linear terms as
            matrices of their own, as NeuroNLP2 does (Ma et al. 2018): the first are much smaller
            then.
    """

    own_initial_weights = True

    def __init__(
        self, dependent: int, head: int, outputs: int, linear: bool = True, as_one: bool = False
    ) -> None:
        super().__init__()
        self.linear, self.as_one = linear, as_one
        self.weight_RIJ = nn.Parameter(torch.empty(outputs, dependent + linear, head + linear))
        self.bias_R = None if linear else nn.Parameter(torch.empty(outputs))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as Glorot and Bengio (2010) do, each output for itself."""
        if self.as_one:
            self._draw_as_one()
        else:
            for weight_IJ in self.weight_RIJ.unbind():
                nn.init.xavier_uniform_(weight_IJ)
        if self.bias_R is not None:
            nn.init.zeros_(self.bias_R)

    @torch.no_grad()
    def _draw_as_one(self) -> None:
        if not self.linear:
            nn.init.xavier_uniform_(self.weight_RIJ)
            return
        nn.init.xavier_uniform_(self.weight_RIJ[:, :-1, :-1])
        nn.init.xavier_uniform_(self.weight_RIJ[:, :-1, -1])
        nn.init.xavier_uniform_(self.weight_RIJ[:, -1, :-1])
        nn.init.zeros_(self.weight_RIJ[:, -1, -1])

    def forward(self, dependents_BWI: Tensor, heads_BHJ: Tensor) -> Tensor:
        """Scores of all pairs. *Shape:* (B, R, W, H)."""
        with torch.autocast(dependents_BWI.device.type, enabled=False):
            left, right = self._extended(dependents_BWI), self._extended(heads_BHJ)
            scores = left[:, None] @ self.weight_RIJ @ right[:, None].transpose(2, 3)
        return scores if self.bias_R is None else scores + self.bias_R[:, None, None]

    def of_pairs(self, dependents_BWI: Tensor, heads_BWJ: Tensor) -> Tensor:
        """Scores of each dependent with one head. *Shape:* (B, W, R)."""
        with torch.autocast(dependents_BWI.device.type, enabled=False):
            left, right = self._extended(dependents_BWI), self._extended(heads_BWJ)
            scores = torch.einsum("bwi,rij,bwj->bwr", left, self.weight_RIJ, right)
        return scores if self.bias_R is None else scores + self.bias_R

    def _extended(self, states: Tensor) -> Tensor:
        states = states.to(self.weight_RIJ.dtype)
        return F.pad(states, (0, 1), value=1.0) if self.linear else states


class FeatureDropout(nn.Dropout1d):
    """Dropout of whole features: one mask for all positions of a sequence (B, W, D)."""

    def forward(self, states_BWD: Tensor) -> Tensor:
        return super().forward(states_BWD.transpose(1, 2)).transpose(1, 2)


def possible_heads(sentences_BW: Tensor, itself: bool = False) -> Tensor:
    """ROOT and the words of its own sentence, for each word. *Shape:* (B, W, 1 + W), bool."""
    same_BWW = sentences_BW[:, :, None] == sentences_BW[:, None, :]
    same_BWW = same_BWW & (sentences_BW >= 0)[:, None, :]
    if not itself:
        diagonal_WW = torch.eye(same_BWW.shape[1], dtype=torch.bool, device=same_BWW.device)
        same_BWW = same_BWW & ~diagonal_WW
    return F.pad(same_BWW, (1, 0), value=True)


def states_at(states_BHD: Tensor, places_BW: Tensor) -> Tensor:
    """The state at each place, such as that of each word's head. *Shape:* (B, W, D)."""
    return states_BHD.gather(1, places_BW[:, :, None].expand(-1, -1, states_BHD.shape[2]))


def summed_loss(scores: Tensor, targets: Tensor) -> Tensor:
    """Sum of the cross-entropies of the targets (...) that are not -100; scores are (..., C)."""
    return F.cross_entropy(
        scores.flatten(0, -2), targets.flatten(), ignore_index=IGNORE, reduction="sum"
    )


def mean_loss(scores: Tensor, targets: Tensor) -> Tensor:
    """Mean of the cross-entropies of the targets (...) that are not -100; 0 without any."""
    count = (targets != IGNORE).sum().clamp(min=1)
    return summed_loss(scores, targets) / count


def keep_torch_weights(module: nn.Module) -> nn.Module:
    """Let the parts of a module have the initial weights that torch draws.

    A `transformers` model would draw those of BERT, which are so small that a parser of several
    layers hardly begins to learn.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.LSTM | nn.Embedding | nn.Conv1d):
            setattr(part, "own_initial_weights", True)  # noqa: B010 - no attribute of the class
    return module
