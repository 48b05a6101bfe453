"""The graph decoder of the order-free parser (Ahmad et al. 2019; Dozat and Manning 2017).

Letters in shapes: ``B`` sentences, ``W`` words, ``H`` heads: ROOT and the words, ``D`` width, ``R``
relations, the symbols before them included.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.batches import IGNORE
from syntax.trees.mst import sentence_heads
from syntax.variant import Variant, is_released
from trainer.nn.biaffine import (
    Biaffine,
    FeatureDropout,
    keep_torch_weights,
    possible_heads,
    states_at,
    summed_loss,
)

SYMBOLS: Final = 3
"""Outputs before the relations: the release has types for padding, ROOT and the end of a sentence.
They are scored in training, and never given."""

HIDDEN: Final = -1e8
"""The score of a head that is padding or of another sentence."""


class Projected(NamedTuple):
    """States as heads, (B, H, D), and as dependents, (B, W, D), for arcs and for relations."""

    arc_heads: Tensor
    arc_words: Tensor
    relation_heads: Tensor
    relation_words: Tensor


class GraphParser(nn.Module):
    """Scores of heads, and of relations given a head.

    Dropout takes whole features: a sentence has one mask for all positions, and one for heads and
    dependents together.
    """

    def __init__(self, width: int, arc: int, relation: int, relations: int, dropout: float) -> None:
        super().__init__()
        self.as_arc = nn.ModuleList(nn.Linear(width, arc) for _ in "hd")
        self.as_relation = nn.ModuleList(nn.Linear(width, relation) for _ in "hd")
        self.arcs = Biaffine(arc, arc, 1, as_one=True)
        self.relations = Biaffine(relation, relation, SYMBOLS + relations, as_one=True)
        self.dropout = FeatureDropout(dropout)
        keep_torch_weights(self)

    def project(self, states_BHD: Tensor) -> Projected:
        states_BHD = self.dropout(states_BHD)
        arc_heads, arc_words = self._both(self.as_arc, states_BHD)
        relation_heads, relation_words = self._both(self.as_relation, states_BHD)
        return Projected(arc_heads, arc_words[:, 1:], relation_heads, relation_words[:, 1:])

    def forward(self, projected: Projected, sentences_BW: Tensor) -> Tensor:
        """Scores of the heads of each word. *Shape:* (B, W, H), float32."""
        scores_BWH: Tensor = self.arcs(projected.arc_words, projected.arc_heads)
        possible_BWH = possible_heads(sentences_BW, itself=True)
        return scores_BWH[:, 0].masked_fill(~possible_BWH, HIDDEN)

    def relate(self, projected: Projected, heads_BW: Tensor) -> Tensor:
        """Scores of each word's relations to one head (0 is ROOT). *Shape:* (B, W, R), float32."""
        chosen = states_at(projected.relation_heads, heads_BW)
        return self.relations.of_pairs(projected.relation_words, chosen)

    def relate_all(self, projected: Projected) -> Tensor:
        """Scores of the relations of all pairs. *Shape:* (B, W, H, R), float32."""
        found: Tensor = self.relations(projected.relation_words, projected.relation_heads)
        return found.permute(0, 2, 3, 1)

    def _both(self, maps: nn.ModuleList, states_BHD: Tensor) -> tuple[Tensor, Tensor]:
        both = torch.cat([F.elu(one(states_BHD)) for one in maps], dim=1)
        heads, words = self.dropout(both).chunk(2, dim=1)
        return heads, words


def graph_loss(
    parser: GraphParser,
    projected: Projected,
    arcs_BWH: Tensor,
    heads_BW: Tensor,
    relations_BW: Tensor,
) -> Tensor:
    """Mean negative log-likelihood of heads, and of relations given the right heads; a scalar.

    -100 stands for nothing to learn: no head, or a relation that the parser does not have. Right
    relations do not count the symbols.
    """
    learned_BW = heads_BW != IGNORE
    scores_BWR = parser.relate(projected, heads_BW.clamp(min=0))
    known_BW = learned_BW & (relations_BW != IGNORE)
    types_BW = torch.where(known_BW, relations_BW + SYMBOLS, IGNORE)
    total = summed_loss(arcs_BWH, heads_BW) + summed_loss(scores_BWR, types_BW)
    return total / learned_BW.sum().clamp(min=1)


def graph_energy(arcs_BWH: Tensor, relations_BWHR: Tensor) -> Tensor:
    """``log p(head) + max over relations of log p(relation | head)``. *Shape:* (B, W, H), float32.

    The relations' probabilities count the symbols; the best relation is not a symbol.
    """
    best_BWH = relations_BWHR.log_softmax(-1)[..., SYMBOLS:].amax(-1)
    return arcs_BWH.log_softmax(-1) + best_BWH


def graph_trees(
    energy_BWH: NDArray[np.float32],
    sentences_BW: NDArray[np.int64],
    single_root: bool,
    space: Variant = "as_published",
) -> NDArray[np.int64]:
    """The best tree of each sentence. *Shape:* (B, W), int64, 0 for ROOT.

    Published: the product of the arcs' probabilities is largest; released: their sum.
    """
    energy = np.exp(energy_BWH) if is_released(space) else energy_BWH
    rows = zip(energy, sentences_BW, strict=True)
    return np.stack([sentence_heads(*row, single_root) for row in rows]).astype(np.int64)
