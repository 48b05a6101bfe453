"""BERT with relative positions, which transformers 5 has dropped.

Shaw et al. 2018 (``relative_key``) and Huang et al. 2020, "Improve Transformer Models with Better
Relative Position Embeddings", method 4 (``relative_key_query``): a table E per layer has a row for
each distance, and with r = E[i - j + P - 1], of P positions,

    score_ij = (q_i k_j + q_i r + k_j r) / sqrt(D),

the last term in ``relative_key_query`` alone. There are no absolute positions. All else is
transformers' own BERT; weights of its release 4 have the same names.

Letters in shapes: ``B`` examples, ``N`` heads, ``L`` wordpieces, ``D`` head size.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, get_args

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, BertConfig, BertModel

from syntax.errors import SpecError
from trainer.nn.attention import EAGER, SDPA

RelativePositions: TypeAlias = Literal["relative_key", "relative_key_query"]

_OURS: Final = {None: SDPA, "sdpa": SDPA, "eager": EAGER}


class RelativeBertConfig(BertConfig):
    """BERT's configuration, and how positions enter the scores."""

    model_type = "parsebank-relative-bert"

    position_embedding_type: str = "relative_key_query"


class RelativeBertModel(BertModel):
    """BERT's encoder with a table of relative positions in each layer.

    Where transformers chooses ``sdpa`` or ``eager``, it has the implementation of
    `trainer.nn.attention`, which adds the positions to the scores; P is
    ``max_position_embeddings``.
    """

    config_class = RelativeBertConfig
    _supports_flash_attn = False
    _supports_flex_attn = False

    def __init__(self, config: RelativeBertConfig, add_pooling_layer: bool = False) -> None:
        if config.position_embedding_type not in get_args(RelativePositions):
            raise SpecError(
                f"position_embedding_type is {config.position_embedding_type!r}; it is "
                "relative_key or relative_key_query"
            )
        chosen = config._attn_implementation
        config._attn_implementation = _OURS.get(chosen, chosen)
        super().__init__(config, add_pooling_layer=add_pooling_layer)
        embeddings: Any = self.embeddings
        embeddings.position_embeddings = _NoPositions()
        size = config.hidden_size // config.num_attention_heads
        layers: Any = self.encoder.layer
        for layer in layers:
            table = nn.Embedding(2 * config.max_position_embeddings - 1, size)
            layer.attention.self.distance_embedding = table
        self.post_init()  # type: ignore[no-untyped-call]


class _NoPositions(nn.Module):
    """In the place of absolute positions: adds nothing."""

    def forward(self, position_ids: Tensor) -> Tensor:
        return torch.zeros((), device=position_ids.device)


AutoConfig.register(RelativeBertConfig.model_type, RelativeBertConfig)
AutoModel.register(RelativeBertConfig, RelativeBertModel)
