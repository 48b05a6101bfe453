"""BART (Lewis et al. 2020) with a norm on top of encoder and decoder, as PLBART has it.

Layers are transformers' own of PLBART: post-norm, GELU, learned positions, a norm over embeddings.
PLBART's paper puts one more norm on top of each stack; its weights as transformers reads them have
none.
"""

from __future__ import annotations

from typing import Any

from torch import nn
from transformers import AutoConfig, AutoModel, PLBartConfig, PretrainedConfig
from transformers.models.plbart.modeling_plbart import PLBartDecoder, PLBartEncoder

from trainer.nn.transformer import GeneratingDecoder


class NormedBartConfig(PLBartConfig):
    """Sizes of one of the two stacks."""

    model_type = "parsebank-plbart"


class NormedBartEncoder(PLBartEncoder):
    """The encoder; its states have the *shape* (B, L, D)."""

    config_class = NormedBartConfig

    def __init__(self, config: NormedBartConfig) -> None:
        super().__init__(config)
        self.layer_norm = nn.LayerNorm(config.d_model)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(self, *args: Any, **options: Any) -> Any:
        output = super().forward(*args, **options)
        output.last_hidden_state = self.layer_norm(output.last_hidden_state)
        if output.hidden_states is not None:
            output.hidden_states = (*output.hidden_states[:-1], output.last_hidden_state)
        return output


class NormedBartDecoder(PLBartDecoder):
    """The decoder's layers."""

    config_class = NormedBartConfig

    def __init__(self, config: NormedBartConfig) -> None:
        super().__init__(config)
        self.layer_norm = nn.LayerNorm(config.d_model)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(self, *args: Any, **options: Any) -> Any:
        output = super().forward(*args, **options)
        output.last_hidden_state = self.layer_norm(output.last_hidden_state)
        return output


class GeneratingBart(GeneratingDecoder):
    """The decoder with its search."""

    config_class = NormedBartConfig
    stack = NormedBartDecoder


def bart_decoder(encoder: PretrainedConfig) -> GeneratingBart:
    """A decoder of the size of an encoder; the task says what begins and ends its texts."""
    sizes = encoder.to_dict()
    width, heads = int(encoder.hidden_size), int(encoder.num_attention_heads)
    config = NormedBartConfig(
        d_model=width,
        decoder_layers=int(encoder.num_hidden_layers),
        encoder_layers=0,
        decoder_attention_heads=heads,
        encoder_attention_heads=heads,
        decoder_ffn_dim=sizes.get("encoder_ffn_dim", 4 * width),
        dropout=sizes.get("dropout", 0.1),
        attention_dropout=sizes.get("attention_dropout", 0.1),
        max_position_embeddings=encoder.max_position_embeddings,
        vocab_size=encoder.vocab_size,
        pad_token_id=encoder.pad_token_id,
        forced_eos_token_id=None,
        is_encoder_decoder=False,
        is_decoder=True,
    )
    return GeneratingBart(config)


AutoConfig.register(NormedBartConfig.model_type, NormedBartConfig)
AutoModel.register(NormedBartConfig, NormedBartEncoder)
