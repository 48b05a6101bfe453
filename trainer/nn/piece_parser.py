"""A biaffine parser over pieces: the universal syntax learning (USL) of UD-PrLM.

Position 0, [CLS], is ROOT. Dependents have a bias, heads of arcs have none.

Letters in shapes: ``B`` sequences, ``L`` positions as dependents, ``H`` positions as heads, ``C``
labels, ``D`` width of the encoder, ``I`` and ``J`` widths of dependents and heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.variant import Variant, is_released
from trainer.nn.biaffine import mean_loss, states_at
from trainer.nn.context import SharedDropout

RESERVED: Final = ("_", "APP")
"""Labels that no relation of a treebank has: of special tokens, and of later pieces of a word."""


@dataclass(frozen=True, slots=True)
class PieceScores:
    """Scores of the trees of a batch.

    Attributes:
        arcs_BLH: -inf at padding; float32.
        dependents_BLI, heads_BHJ: Inputs of the labels' scores; a 1 comes last.
    """

    arcs_BLH: Tensor
    dependents_BLI: Tensor
    heads_BHJ: Tensor
    labels_CIJ: Tensor

    def of_heads(self, heads_BL: Tensor) -> Tensor:
        """Scores of the labels of each position under one head. *Shape:* (B, L, C), float32."""
        heads_BLJ = states_at(self.heads_BHJ, heads_BL)
        with torch.autocast(heads_BLJ.device.type, enabled=False):
            return torch.einsum("bli,cij,blj->blc", self.dependents_BLI, self.labels_CIJ, heads_BLJ)


class PieceParser(nn.Module):
    """Scores of heads and labels of pieces; all are 0 at first.

    Args:
        activation: ReLU, or as released LeakyReLU with a slope of 0.1.
        mlp_init: Projections start with orthogonal weights and without bias, or as released with
            weights as all linear maps of the encoder.
    """

    own_initial_weights = True

    def __init__(
        self,
        width: int,
        labels: int,
        *,
        arc: int = 128,
        relation: int = 64,
        dropout: float = 0.33,
        activation: Variant = "as_published",
        mlp_init: Variant = "as_published",
    ) -> None:
        super().__init__()
        sizes = {
            "arc_dependent": arc,
            "arc_head": arc,
            "label_dependent": relation,
            "label_head": relation,
        }
        linear = nn.Linear if is_released(mlp_init) else OrthogonalLinear
        self.projections = nn.ModuleDict(
            {
                name: nn.Sequential(
                    linear(width, size),
                    nn.LeakyReLU(0.1) if is_released(activation) else nn.ReLU(),
                    SharedDropout(dropout),
                )
                for name, size in sizes.items()
            }
        )
        self.arcs_IJ = nn.Parameter(torch.empty(arc + 1, arc))
        self.labels_CIJ = nn.Parameter(torch.empty(labels, relation + 1, relation + 1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.arcs_IJ)
        nn.init.zeros_(self.labels_CIJ)

    def forward(self, states_BLD: Tensor, mask_BL: Tensor) -> PieceScores:
        found = {name: of(states_BLD).float() for name, of in self.projections.items()}
        with torch.autocast(states_BLD.device.type, enabled=False):
            dependents_BLI = _with_one(found["arc_dependent"])
            arcs_BLH = dependents_BLI @ self.arcs_IJ @ found["arc_head"].transpose(1, 2)
        return PieceScores(
            arcs_BLH.masked_fill(~mask_BL[:, None, :], -torch.inf),
            _with_one(found["label_dependent"]),
            _with_one(found["label_head"]),
            self.labels_CIJ,
        )


def piece_loss(scores: PieceScores, heads_BL: Tensor, labels_BL: Tensor) -> Tensor:
    """Cross-entropy of heads, plus that of labels under the right heads; a scalar.

    Each is a mean over the positions whose target is not -100, and 0 without any.
    """
    labels_BLC = scores.of_heads(heads_BL.clamp(min=0))
    return mean_loss(scores.arcs_BLH, heads_BL) + mean_loss(labels_BLC, labels_BL)


class OrthogonalLinear(nn.Linear):
    """A linear map that starts with orthogonal weights and without bias."""

    own_initial_weights = True

    def reset_parameters(self) -> None:
        nn.init.orthogonal_(self.weight)
        nn.init.zeros_(self.bias)


def _with_one(states: Tensor) -> Tensor:
    return F.pad(states, (0, 1), value=1.0)
