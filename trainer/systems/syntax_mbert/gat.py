"""Graph attention over a dependency tree, as published and as released with Syntax-MBERT.

A node attends to the nodes at most ``max_distance`` edges away in the full tree. The published
layer has equations 2 and 3 of Ahmad et al. (2021); the released code has the additive layer of
Veličković et al. (2018) in its place. ``F`` and ``G`` = N * D are widths of input and output.
"""

from __future__ import annotations

from typing import Final, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from syntax.trees.ud import DEPREL, UPOS
from syntax.variant import Variant
from trainer.batch import EXTRA_TAGS, SyntaxBatch, tag_ids
from trainer.nn.attention import masked_softmax
from trainer.systems.syntax_mbert.options import SyntaxBertOptions

_GAIN = 1.414
_LEAK = 0.2
_EPSILON: Final = 1e-12
"""BERT's, of LayerNorm; for encoders that have none in their configuration."""


class DotProductGraphAttention(nn.Module):
    """Published: softmax((T T^T + M) / sqrt(D)) V, queries and keys sharing T."""

    own_initial_weights = True

    def __init__(self, width: int, heads: int, head_size: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.node_GF = nn.Parameter(torch.empty(heads * head_size, width))
        self.value_GF = nn.Parameter(torch.empty(heads * head_size, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = _xavier_bound(self.node_GF.shape[1], self.node_GF.shape[0] // self.heads)
        nn.init.uniform_(self.node_GF, -bound, bound)
        nn.init.uniform_(self.value_GF, -bound, bound)

    def forward(self, states_BLF: Tensor, allowed_BLL: Tensor) -> Tensor:
        node_BNLD = _project(states_BLF, self.node_GF, self.heads)
        scores_BNLL = node_BNLD @ node_BNLD.transpose(2, 3) * node_BNLD.shape[-1] ** -0.5
        weights_BNLL = masked_softmax(scores_BNLL, allowed_BLL[:, None])
        weights_BNLL = F.dropout(weights_BNLL, self.dropout, self.training)
        return _join_heads(weights_BNLL @ _project(states_BLF, self.value_GF, self.heads))


class AdditiveGraphAttention(nn.Module):
    """Released: e_ij = LeakyReLU(a1 . W h_i + a2 . W h_j), weights over the same W h."""

    own_initial_weights = True

    def __init__(self, width: int, heads: int, head_size: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.node_GF = nn.Parameter(torch.empty(heads * head_size, width))
        self.source_ND = nn.Parameter(torch.empty(heads, head_size))
        self.target_ND = nn.Parameter(torch.empty(heads, head_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw Xavier weights for each head by itself, as released."""
        head_size = self.source_ND.shape[1]
        bound = _xavier_bound(self.node_GF.shape[1], head_size)
        nn.init.uniform_(self.node_GF, -bound, bound)
        bound = _xavier_bound(head_size, 1)
        nn.init.uniform_(self.source_ND, -bound, bound)
        nn.init.uniform_(self.target_ND, -bound, bound)

    def forward(self, states_BLF: Tensor, allowed_BLL: Tensor) -> Tensor:
        node_BNLD = _project(states_BLF, self.node_GF, self.heads)
        source_BNL = torch.einsum("bnld,nd->bnl", node_BNLD, self.source_ND)
        target_BNL = torch.einsum("bnld,nd->bnl", node_BNLD, self.target_ND)
        scores_BNLL = F.leaky_relu(source_BNL[..., :, None] + target_BNL[..., None, :], _LEAK)
        weights_BNLL = masked_softmax(scores_BNLL, allowed_BLL[:, None])
        weights_BNLL = F.dropout(weights_BNLL, self.dropout, self.training)
        # The release drops the concatenated heads once more.
        return F.dropout(_join_heads(weights_BNLL @ node_BNLD), self.dropout, self.training)


LAYERS: Final[dict[Variant, type[DotProductGraphAttention] | type[AdditiveGraphAttention]]] = {
    "as_published": DotProductGraphAttention,
    "as_released": AdditiveGraphAttention,
}


class GraphEncoder(nn.Module):
    """Raw word embeddings plus tags, some graph attention layers, one LayerNorm at the end.

    There are no residual connections, feed-forward layers or positions; paper and release agree.
    """

    def __init__(
        self,
        width: int,
        *,
        variant: Variant = "as_published",
        layers: int = 4,
        heads: int = 4,
        head_size: int = 64,
        dropout: float = 0.1,
        max_distance: int = 4,
        use_upos: bool = True,
        use_deprel: bool = False,
        eps: float = 1e-12,
    ) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.upos = _tag_embedding(len(UPOS), width) if use_upos else None
        self.deprel = _tag_embedding(len(DEPREL), width) if use_deprel else None
        widths = [width] + [heads * head_size] * (layers - 1)
        self.layers = nn.ModuleList(
            LAYERS[variant](layer_width, heads, head_size, dropout) for layer_width in widths
        )
        self.norm = nn.LayerNorm(heads * head_size, eps=eps)

    def forward(self, words_BLF: Tensor, batch: SyntaxBatch) -> Tensor:
        """States g of the pieces in their tree. *Shape:* (B, L, G); finite on padding."""
        states = words_BLF
        if self.upos is not None:
            states = states + self.upos(tag_ids(batch, batch.upos_BL, len(UPOS)))
        if self.deprel is not None:
            states = states + self.deprel(tag_ids(batch, batch.deprel_BL, len(DEPREL)))
        allowed_BLL = allowed(batch, self.max_distance)
        for layer in self.layers:
            states = layer(states, allowed_BLL)
        normed: Tensor = self.norm(states)
        return normed


def graph_encoder(options: SyntaxBertOptions, stock: PreTrainedModel) -> GraphEncoder:
    words = cast(nn.Embedding, stock.get_input_embeddings())
    return GraphEncoder(
        words.embedding_dim,
        variant=options.gat,
        layers=options.gat_layers,
        heads=options.gat_heads,
        head_size=options.gat_head_size,
        dropout=options.gat_dropout,
        max_distance=options.max_distance,
        use_upos=options.use_upos,
        use_deprel=options.use_deprel,
        eps=getattr(stock.config, "layer_norm_eps", _EPSILON),
    )


def allowed(batch: SyntaxBatch, max_distance: int) -> Tensor:
    return (batch.distances() <= max_distance) & batch.reachable_BLL


def _tag_embedding(tags: int, width: int) -> nn.Embedding:
    return nn.Embedding(tags + EXTRA_TAGS, width, padding_idx=0)


def _xavier_bound(rows: int, columns: int) -> float:
    return float(_GAIN * (6.0 / (rows + columns)) ** 0.5)


def _project(states_BLF: Tensor, weight_GF: Tensor, heads: int) -> Tensor:
    B, L, _ = states_BLF.shape
    return F.linear(states_BLF, weight_GF).view(B, L, heads, -1).transpose(1, 2)


def _join_heads(states_BNLD: Tensor) -> Tensor:
    return states_BNLD.transpose(1, 2).flatten(2)
