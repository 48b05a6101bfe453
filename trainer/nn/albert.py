"""ALBERT, whose layers share their parameters, with the number of the layer in its attention.

All else is transformers' own ALBERT; weights have the same names.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers import AlbertConfig, AlbertModel, BertConfig
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.albert.modeling_albert import AlbertLayer, AlbertTransformer
from transformers.models.bert.modeling_bert import BertSelfAttention


class NumberedAlbert(AlbertModel):
    """ALBERT that calls each layer with its ``number``."""

    def __init__(self, config: AlbertConfig, add_pooling_layer: bool = False) -> None:
        super().__init__(config, add_pooling_layer=add_pooling_layer)
        self.encoder = _Layers(config)
        self.post_init()  # type: ignore[no-untyped-call]

    @property
    def layers(self) -> list[nn.Module]:
        """The layers, first to last; those of a group are the same module."""
        groups: Any = self.encoder.albert_layer_groups
        count = int(self.config.num_hidden_layers)
        return [groups[n * len(groups) // count].albert_layers[0] for n in range(count)]

    def further_layer(self) -> AlbertLayer:
        layer = AlbertLayer(self.config)
        attention: Any = layer.attention
        attention.layer_idx = int(self.config.num_hidden_layers)
        return layer

    def further_attention(self) -> BertSelfAttention:
        """BERT's, which is the same but for the map, residual and norm that ALBERT's has inside."""
        own = self.config
        config = BertConfig(
            hidden_size=own.hidden_size,
            num_attention_heads=own.num_attention_heads,
            attention_probs_dropout_prob=own.attention_probs_dropout_prob,
        )
        config._attn_implementation = own._attn_implementation
        return BertSelfAttention(config, layer_idx=int(own.num_hidden_layers))


class _Layers(AlbertTransformer):
    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, **options: Any
    ) -> BaseModelOutput:
        states_BLD = self.embedding_hidden_mapping_in(hidden_states)
        groups, count = self.albert_layer_groups, int(self.config.num_hidden_layers)
        for number in range(count):
            group = groups[number * len(groups) // count]
            states_BLD = group(states_BLD, attention_mask, number=number, **options)
        return BaseModelOutput(last_hidden_state=states_BLD)
