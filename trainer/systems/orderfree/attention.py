"""Self-attention that knows how far words are apart, and not on which side.

Ahmad et al. (2019), section 3.2: the relative positions of Shaw et al. (2018) without their sign.
Layers are pre-norm, as in the released code. ``R`` distances are told apart.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.nn.biaffine import keep_torch_weights
from trainer.systems.gate.attention import ReleasedLayerNorm
from trainer.systems.orderfree.options import OrderFreeOptions


class RelativeAttention(nn.Module):
    """``softmax(q (k + a) / sqrt(S)) (v + b)``, where a and b are vectors of the distance.

    Tables have rows for distances from -``max_distance`` on; without direction those of negative
    ones are not read, as in the released code.
    """

    own_initial_weights = True

    def __init__(self, width: int, options: OrderFreeOptions) -> None:
        super().__init__()
        inner = options.heads * options.head_size
        self.heads, self.directed = options.heads, options.position == "directed"
        self.query, self.key, self.value = (nn.Linear(width, inner) for _ in range(3))
        self.output = nn.Linear(inner, width)
        self.dropout = nn.Dropout(options.attention_dropout)
        self.largest = 0
        if options.position in ("relative", "directed"):
            self.largest = options.max_distance
            shape = (2 * self.largest + 1, options.head_size)
            self.keys_RS = nn.Parameter(torch.empty(shape))
            self.values_RS = nn.Parameter(torch.empty(shape))
        keep_torch_weights(self)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the vectors of distances as Glorot and Bengio (2010) do."""
        if self.largest:
            nn.init.xavier_normal_(self.keys_RS)
            nn.init.xavier_normal_(self.values_RS)

    def forward(self, states_BWD: Tensor, seen_BW: Tensor) -> Tensor:
        """Attend to the positions in ``seen_BW``, bool, one at least in each row."""
        query = self._split(self.query(states_BWD))
        key, value = self._split(self.key(states_BWD)), self._split(self.value(states_BWD))
        query = query * query.shape[-1] ** -0.5
        scores_BNWW = query @ key.transpose(2, 3)
        if self.largest:
            first = 0 if self.directed else self.largest
            rows_WWR = self._rows(states_BWD)
            by_distance_BNWR = query @ self.keys_RS[first:].T
            scores_BNWW = scores_BNWW + torch.einsum("bnir,ijr->bnij", by_distance_BNWR, rows_WWR)
        hidden_B11W = ~seen_BW[:, None, None, :]
        shares_BNWW = scores_BNWW.masked_fill(hidden_B11W, float("-inf")).softmax(-1)
        shares_BNWW = self.dropout(shares_BNWW)
        context_BNWS = shares_BNWW @ value
        if self.largest:
            sums_BNWR = torch.einsum("bnij,ijr->bnir", shares_BNWW, rows_WWR)
            context_BNWS = context_BNWS + sums_BNWR @ self.values_RS[first:]
        joined: Tensor = self.output(context_BNWS.transpose(1, 2).flatten(2))
        return joined

    def _split(self, states: Tensor) -> Tensor:
        B, W, _ = states.shape
        return states.view(B, W, self.heads, -1).transpose(1, 2)

    def _rows(self, states_BWD: Tensor) -> Tensor:
        places_W = torch.arange(states_BWD.shape[1], device=states_BWD.device)
        distance_WW = (places_W[None] - places_W[:, None]).clamp(-self.largest, self.largest)
        if self.directed:
            rows_WW, count = distance_WW + self.largest, 2 * self.largest + 1
        else:
            rows_WW, count = distance_WW.abs(), self.largest + 1
        return F.one_hot(rows_WW, count).to(states_BWD.dtype)


class PreNormLayer(nn.Module):
    """``x + drop(attention(LN x))``, then ``x + drop(W2 drop(ReLU(W1 LN x)))``.

    With ``attention_residual=normed`` ``LN x`` takes the place of the first x.
    """

    def __init__(self, width: int, options: OrderFreeOptions) -> None:
        super().__init__()
        self.before_attention, self.before_network = (ReleasedLayerNorm(width) for _ in range(2))
        self.attention = RelativeAttention(width, options)
        self.network = nn.Sequential(
            nn.Linear(width, options.feed_forward),
            nn.ReLU(),
            nn.Dropout(options.feed_forward_dropout),
            nn.Linear(options.feed_forward, width),
        )
        self.dropout = nn.Dropout(options.layer_dropout)
        self.residual = options.attention_residual

    def forward(self, states_BWD: Tensor, seen_BW: Tensor) -> Tensor:
        normed_BWD = self.before_attention(states_BWD)
        kept_BWD = normed_BWD if self.residual == "normed" else states_BWD
        states_BWD = kept_BWD + self.dropout(self.attention(normed_BWD, seen_BW))
        fed_BWD: Tensor = self.dropout(self.network(self.before_network(states_BWD)))
        return states_BWD + fed_BWD


class SelfAttention(nn.Module):
    """The layers and a LayerNorm; undirected, states turn round with the sentence."""

    def __init__(self, width: int, options: OrderFreeOptions) -> None:
        super().__init__()
        self.layers = nn.ModuleList(PreNormLayer(width, options) for _ in range(options.layers))
        self.last = ReleasedLayerNorm(width)
        keep_torch_weights(self)

    def forward(self, states_BWD: Tensor, seen_BW: Tensor) -> Tensor:
        for layer in self.layers:
            states_BWD = layer(states_BWD, seen_BW)
        normed_BWD: Tensor = self.last(states_BWD)
        return normed_BWD
