"""Attention divided by distance, and relative positions.

Equation 4 of Ahmad et al. (2021): each syntactic head masks what is farther than its delta, divides
the probabilities of the rest by their distance, and normalises them again. The baselines add
relative positions to keys and values (Shaw et al. 2018, https://aclanthology.org/N18-2074), of the
text or of the tree (Wang et al. 2019, https://aclanthology.org/D19-1145). ``K`` syntactic heads are
the first of ``N``; ``S`` is the size of a head.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.variant import Variant
from trainer.nn.attention import masked_softmax


def head_weights(
    distance_BWW: Tensor | None,
    real_BW: Tensor,
    heads: int,
    deltas: Sequence[int],
    variant: Variant = "as_published",
) -> Tensor:
    """Factors of the probabilities of each head, float32; 0 masks. *Shape:* (B, N, W, W).

    Each of the first heads sees as many edges far as ``deltas`` say; the others see every word,
    undivided. As published a word is at distance 1 from itself; as released it is masked.
    """
    seen_B1WW = real_BW[:, None, None, :].float().expand(-1, 1, real_BW.shape[1], -1)
    free = seen_B1WW.expand(-1, heads - len(deltas), -1, -1)
    if not deltas or distance_BWW is None:
        return free
    distance_B1WW = distance_BWW[:, None].float()
    own = 0.0 if variant == "as_released" else 1.0
    shares_B1WW = torch.where(distance_B1WW == 0, own, 1.0 / distance_B1WW.clamp(min=1.0))
    limits = torch.tensor(deltas, device=real_BW.device).view(1, -1, 1, 1)
    near_BKWW = shares_B1WW * (distance_B1WW <= limits) * seen_B1WW
    return torch.cat([near_BKWW, free], dim=1)


class RelativePositions(nn.Module):
    """A vector for every relative position up to ``largest``, which farther ones share."""

    def __init__(self, head_size: int, largest: int) -> None:
        super().__init__()
        self.largest = largest
        self.key = nn.Embedding(2 * largest + 1, head_size)
        self.value = nn.Embedding(2 * largest + 1, head_size)

    def forward(self, positions_BWW: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors to add to keys and to values. *Shape:* (B, W, W, S) each."""
        ids_BWW = positions_BWW.clamp(-self.largest, self.largest).long() + self.largest
        return self.key(ids_BWW), self.value(ids_BWW)


def sequence_positions(words: int, device: torch.device) -> Tensor:
    """Offset of each word to the right of each other. *Shape:* (1, W, W), int64."""
    order = torch.arange(words, device=device)
    return (order[None, :] - order[:, None])[None]


def structure_positions(
    distance_BWW: Tensor, largest: int, variant: Variant = "as_published"
) -> Tensor:
    """Edges between words, negative to the left as published; ``largest`` without a path."""
    edges_BWW = distance_BWW.long().clamp(max=largest)
    if variant == "as_released":
        return edges_BWW
    return edges_BWW * sequence_positions(distance_BWW.shape[-1], distance_BWW.device).sign()


class DistanceAttention(nn.Module):
    """Heads whose probabilities are weighted, then normalised; zeros where a head sees nothing."""

    def __init__(self, width: int, heads: int, head_size: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query = nn.Linear(width, heads * head_size)
        self.key = nn.Linear(width, heads * head_size)
        self.value = nn.Linear(width, heads * head_size)
        self.output = nn.Linear(heads * head_size, width)

    def forward(
        self,
        states_BWD: Tensor,
        weights_BNWW: Tensor,
        relative: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Attend, probabilities times ``weights_BNWW``; ``relative`` adds to keys and values."""
        query, key, value = map(self._split, (self.query, self.key, self.value), [states_BWD] * 3)
        scores_BNWW = query @ key.transpose(2, 3)
        if relative is not None:
            scores_BNWW = scores_BNWW + torch.einsum("bnis,bijs->bnij", query, relative[0])
        scores_BNWW = scores_BNWW * query.shape[-1] ** -0.5
        shares_BNWW = masked_softmax(scores_BNWW, weights_BNWW > 0) * weights_BNWW
        shares_BNWW = F.normalize(shares_BNWW, p=1.0, dim=-1)
        shares_BNWW = F.dropout(shares_BNWW, self.dropout, self.training)
        context_BNWS = shares_BNWW @ value
        if relative is not None:
            context_BNWS = context_BNWS + torch.einsum("bnij,bijs->bnis", shares_BNWW, relative[1])
        joined: Tensor = self.output(context_BNWS.transpose(1, 2).flatten(2))
        return joined

    def _split(self, linear: nn.Module, states_BWD: Tensor) -> Tensor:
        B, W, _ = states_BWD.shape
        split: Tensor = linear(states_BWD).view(B, W, self.heads, -1).transpose(1, 2)
        return split


class ReleasedLayerNorm(nn.Module):
    """``weight (x - mean) / (std + eps) + bias`` over the last axis, with the std of n - 1.

    `torch.nn.LayerNorm` divides by the root of the variance of n plus eps.
    """

    own_initial_weights = True

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.bias = nn.Parameter(torch.empty(width))
        self.eps = eps
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, states: Tensor) -> Tensor:
        centred = states - states.mean(-1, keepdim=True)
        return self.weight * centred / (states.std(-1, keepdim=True) + self.eps) + self.bias


class DistanceLayer(nn.Module):
    """Attention and a feed-forward network, each followed by residual and LayerNorm (post-LN)."""

    def __init__(
        self,
        width: int,
        heads: int,
        head_size: int,
        feed_forward: int,
        dropout: float,
        *,
        layer_norm: Variant = "as_published",
        feed_forward_dropout: Variant = "as_published",
    ) -> None:
        super().__init__()
        norm = ReleasedLayerNorm if layer_norm == "as_released" else nn.LayerNorm
        self.attention = DistanceAttention(width, heads, head_size, dropout)
        self.attended = norm(width)
        self.network = nn.Sequential(
            nn.Linear(width, feed_forward),
            nn.ReLU(),
            nn.Dropout(0.0 if feed_forward_dropout == "as_released" else dropout),
            nn.Linear(feed_forward, width),
        )
        self.fed = norm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        states_BWD: Tensor,
        weights_BNWW: Tensor,
        relative: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        found_BWD = self.attention(states_BWD, weights_BNWW, relative)
        states_BWD = self.attended(states_BWD + self.dropout(found_BWD))
        fed: Tensor = self.fed(states_BWD + self.dropout(self.network(states_BWD)))
        return fed
