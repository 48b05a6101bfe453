"""A parser of constituents: scores of stretches of words, and a CRF over binary trees of them.

Zhang, Zhou and Li (2020), "Fast and Accurate Neural CRF Constituency Parsing".

Letters in shapes: ``B`` sequences, ``W`` words, ``F`` boundaries of words: W + 1, ``N`` stretches
of one width, ``K`` divisions of each, ``S`` stretches of a tree, ``C`` labels, ``D`` width.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.batches import IGNORE
from trainer.nn.biaffine import Biaffine, keep_torch_weights, states_at, summed_loss
from trainer.nn.context import SharedDropout


def inside(scores_BFF: Tensor, lengths_B: Tensor) -> Tensor:
    """Logarithm of the sum over all binary trees of so many words, at least one. *Shape:* (B,).

    ``scores_BFF`` has that of the stretch between two boundaries; the summand of a tree is the
    exponential of the sum of those of its stretches, single words included (Baker 1979). The
    gradient of the result is the probability that a stretch is in the tree.
    """
    diagonals = _chart(scores_BFF, lambda sums_BNK: sums_BNK.logsumexp(2))
    wholes_BW = torch.stack([diagonal_BN[:, 0] for diagonal_BN in diagonals], 1)
    return wholes_BW.gather(1, lengths_B[:, None] - 1)[:, 0]


@torch.no_grad()
def best_trees(scores_BFF: Tensor, lengths_B: Tensor) -> list[list[tuple[int, int]]]:
    """The stretches of the best binary tree of each sequence (Cocke, Kasami and Younger).

    Of equally good divisions the one with the shortest first part counts; none without words.
    """
    divisions: list[Tensor] = []

    def best(sums_BNK: Tensor) -> Tensor:
        most_BN, division_BN = sums_BNK.max(2)
        divisions.append(division_BN.cpu())
        return most_BN

    _chart(scores_BFF, best)
    found: list[list[tuple[int, int]]] = []
    for row, words in enumerate(lengths_B.tolist()):
        found.append([])
        waiting = [(0, words)] if words else []
        while waiting:
            start, end = waiting.pop()
            found[-1].append((start, end))
            if end - start > 1:
                middle = start + 1 + int(divisions[end - start - 2][row, start])
                waiting += [(middle, end), (start, middle)]
    return found


def _chart(scores_BFF: Tensor, combine: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """Totals within the stretches of each width from 1 on, by their starts. *Shape:* (B, N) each.

    ``combine`` reduces the sums of the two parts of all divisions of all stretches of a width. So
    there are as many steps as words. Padding comes behind the words, and reaches none of their
    stretches.
    """
    diagonals = [scores_BFF.diagonal(1, 1, 2)]
    # Stretches by their starts, and by their ends, in order of width. *Shape:* (B, N, K).
    by_start = by_end = diagonals[0][:, :, None]
    for width in range(2, scores_BFF.shape[1]):
        count = scores_BFF.shape[1] - width
        by_start, by_end = by_start[:, :count], by_end[:, -count:]
        own_BN = scores_BFF.diagonal(width, 1, 2)
        diagonals.append(combine(by_start + by_end.flip(2)) + own_BN)
        by_start = torch.cat([by_start, diagonals[-1][:, :, None]], 2)
        by_end = torch.cat([by_end, diagonals[-1][:, :, None]], 2)
    return diagonals


class SpanParser(nn.Module):
    """Scores of stretches, and of their labels, from states of words of this width.

    A boundary has the first half of the state of the word before it, and the second half of that
    behind it: those of the two directions of an LSTM. Four projections give it a state as left and
    as right end, for stretches and for labels (section 3.1).
    """

    own_initial_weights = True

    def __init__(self, width: int, span: int, label: int, labels: int, dropout: float) -> None:
        super().__init__()
        self.edges_2D = nn.Parameter(torch.empty(2, width))
        self.as_span = nn.ModuleList(_projection(width, span, dropout) for _ in "lr")
        self.as_label = nn.ModuleList(_projection(width, label, dropout) for _ in "lr")
        self.spans = Biaffine(span + 1, span, 1, linear=False)
        self.labels = Biaffine(label, label, labels)
        keep_torch_weights(self)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.edges_2D, std=0.02)

    def boundaries(self, states_BWD: Tensor, real_BW: Tensor) -> Tensor:
        """States between words, before the first and behind the last. *Shape:* (B, F, D)."""
        begin_D, end_D = self.edges_2D.to(states_BWD.dtype)
        states_BWD = torch.where(real_BW[:, :, None], states_BWD, end_D)
        edge_B1D = begin_D.expand(len(states_BWD), 1, -1)
        before_BFD = torch.cat([edge_B1D, states_BWD], 1)
        behind_BFD = torch.cat([states_BWD, end_D.expand_as(edge_B1D)], 1)
        return torch.cat([before_BFD.chunk(2, 2)[0], behind_BFD.chunk(2, 2)[1]], 2)

    def forward(self, states_BFD: Tensor) -> Tensor:
        """Scores of stretches by their boundaries. *Shape:* (B, F, F), float32."""
        left, right = (part(states_BFD) for part in self.as_span)
        scores_B1FF: Tensor = self.spans(F.pad(left, (0, 1), value=1.0), right)
        return scores_B1FF[:, 0]

    def label(self, states_BFD: Tensor, starts_BS: Tensor, ends_BS: Tensor) -> Tensor:
        """Scores of the labels of these stretches. *Shape:* (B, S, C), float32."""
        left, right = (part(states_BFD) for part in self.as_label)
        return self.labels.of_pairs(states_at(left, starts_BS), states_at(right, ends_BS))


def span_loss(
    parser: SpanParser, states_BFD: Tensor, scores_BFF: Tensor, lengths_B: Tensor, gold_BS3: Tensor
) -> Tensor:
    """Negative log-likelihood of binary trees, by word, plus that of labels, a mean; a scalar.

    ``gold_BS3`` has start, end and label of each stretch. The start is -100 behind the last one,
    and in a sequence that has no tree to learn; the label, where the parser does not have it.
    """
    real_BS = gold_BS3[:, :, 0] != IGNORE
    starts_BS, ends_BS = gold_BS3[:, :, :2].clamp(min=0).unbind(2)
    own_BS = scores_BFF.flatten(1).gather(1, starts_BS * scores_BFF.shape[1] + ends_BS)
    trees_B = inside(scores_BFF, lengths_B.clamp(min=1)) - (own_BS * real_BS).sum(1)
    learned_B = real_BS.any(1)
    words = torch.where(learned_B, lengths_B, 0).sum().clamp(min=1)
    labels_BS = torch.where(real_BS, gold_BS3[:, :, 2], IGNORE)
    labels = summed_loss(parser.label(states_BFD, starts_BS, ends_BS), labels_BS)
    known = (labels_BS != IGNORE).sum().clamp(min=1)
    return torch.where(learned_B, trees_B, 0.0).sum() / words + labels / known


def _projection(width: int, size: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, size), nn.LeakyReLU(0.1), SharedDropout(dropout))
