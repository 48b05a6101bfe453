"""Universal syntax integration (USI): the parser's trees put into the states of tokens.

With the probabilities P of heads and labels, A_ijc = P(head of i is j) P(label of i is c | head j).
As published and released, token i has (A x)_ic = sum_j A_ijc x'_i: the content of the head never
enters. So each token's projection x'_i is scaled by the expected distribution of its labels, a_ic =
sum_j A_ijc, and only a, (B, L, C), is needed of A, (B, L, L, C). The latter is computed in blocks
of dependents, again for the gradients, and never kept.

``R`` positions are of a block, ``H`` heads, ``C`` labels; states have the width ``D``, their
projections ``Q`` and ``M``, dependents and heads ``I`` and ``J``.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from syntax.variant import is_released
from trainer.nn.piece_parser import PieceScores
from trainer.systems.udprlm.options import UdPrlmOptions

BLOCK: Final = 2**23
"""Probabilities of labels of pairs that are held at a time."""


class SyntaxIntegration(nn.Module):
    """From states and scores of trees to states for one more layer."""

    own_initial_weights = True

    def __init__(
        self, options: UdPrlmOptions, width: int, labels: int, dropout: float, epsilon: float
    ) -> None:
        super().__init__()
        self.options, size = options, options.usi_width or width
        self.projection = nn.Linear(width, size) if options.usi_width else nn.Identity()
        self.weight_CQM = nn.Parameter(torch.empty(labels, size, size))
        self.linear = nn.Linear(size * labels, width)
        self.output: nn.Module = nn.Identity()
        self.norm: nn.Module = nn.Identity()
        if is_released(options.fusion):
            self.output = nn.Sequential(nn.Linear(width, width), nn.Dropout(dropout))
            self.norm = nn.LayerNorm(width, eps=epsilon)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight_CQM)

    def forward(self, states_BLD: Tensor, scores: PieceScores) -> Tensor:
        x_BLQ = self.projection(states_BLD)
        if self.options.neighbours == "corrected":
            ax_BLCQ = expected(scores, x_BLQ.float())
        else:
            ax_BLCQ = expected(scores)[..., None] * x_BLQ[:, :, None]
        if self.options.mixing == "corrected":
            mixed_BLCM = torch.einsum("blcq,cqm->blcm", ax_BLCQ.to(x_BLQ.dtype), self.weight_CQM)
        else:
            mixed_BLCM = ax_BLCQ * self.weight_CQM.sum(2)
        update_BLD = F.gelu(self.linear(mixed_BLCM.flatten(2).to(states_BLD.dtype)))
        found: Tensor = self.norm(self.output(update_BLD) + states_BLD)
        return found


def expected(scores: PieceScores, x_BHQ: Tensor | None = None) -> Tensor:
    """Expected labels and heads of each position under a parser's trees, float32.

    Gives the distribution of labels, *shape* (B, L, C); with the content ``x_BHQ`` of heads, for
    each label that of the heads, weighed: sum_j A_ijc x_jq, *shape* (B, L, C, Q).
    """
    B, L, H = scores.arcs_BLH.shape
    rows = max(1, BLOCK // (B * H * len(scores.labels_CIJ)))
    with torch.autocast(scores.arcs_BLH.device.type, enabled=False):
        arcs_BLH = scores.arcs_BLH.softmax(2)
        blocks = []
        for start in range(0, L, rows):
            block = slice(start, start + rows)
            read = (
                *(scores.dependents_BLI[:, block], scores.heads_BHJ, scores.labels_CIJ),
                *(arcs_BLH[:, block], x_BHQ),
            )
            if torch.is_grad_enabled():
                blocks.append(
                    checkpoint(_of_block, *read, use_reentrant=False, preserve_rng_state=False)
                )
            else:
                blocks.append(_of_block(*read))
        return torch.cat(blocks, 1)


def _of_block(
    dependents_BRI: Tensor,
    heads_BHJ: Tensor,
    labels_CIJ: Tensor,
    arcs_BRH: Tensor,
    x_BHQ: Tensor | None,
) -> Tensor:
    B, R, H = arcs_BRH.shape
    C = len(labels_CIJ)
    half_BRCJ = torch.einsum("bri,cij->brcj", dependents_BRI, labels_CIJ)
    scores_BRCH = (half_BRCJ.flatten(1, 2) @ heads_BHJ.transpose(1, 2)).view(B, R, C, H)
    labels_BRCH = scores_BRCH.softmax(2)
    if x_BHQ is None:
        return (labels_BRCH @ arcs_BRH[..., None])[..., 0]
    weighed_BRCH = labels_BRCH * arcs_BRH[:, :, None]
    return (weighed_BRCH.flatten(1, 2) @ x_BHQ).view(B, R, C, -1)
