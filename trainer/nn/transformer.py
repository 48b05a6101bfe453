"""The Transformer of Vaswani et al. 2017, as an encoder and a decoder that generates.

Both are transformers' own Marian layers: post-norm, ReLU, sinusoidal positions, embeddings times
the root of their width, no norm over embeddings. Weights begin as in fairseq, which the paper does
not say: Xavier's for linear maps, and embeddings with a variance of 1 / D.

Letters in shapes: ``B`` examples, ``L`` source pieces, ``T`` target pieces, ``D`` width, ``V`` ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import (
    AutoConfig,
    AutoModel,
    GenerationMixin,
    MarianConfig,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers import initialization as init
from transformers.modeling_outputs import CausalLMOutputWithCrossAttentions
from transformers.models.marian.modeling_marian import (
    MarianDecoder,
    MarianEncoder,
    MarianEncoderLayer,
    MarianPreTrainedModel,
)


class TransformerConfig(MarianConfig):
    """Sizes of one of the two stacks."""

    model_type = "parsebank-transformer"


class _Weights(MarianPreTrainedModel):
    config_class = TransformerConfig

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)  # type: ignore[no-untyped-call]
        if isinstance(module, nn.Linear):
            init.xavier_uniform_(module.weight)
        elif type(module) is nn.Embedding:  # positions are a subclass, and stay as they are
            init.normal_(module.weight, std=module.embedding_dim**-0.5)
            if module.padding_idx is not None:
                init.zeros_(module.weight[module.padding_idx])


class TransformerEncoder(_Weights, MarianEncoder):
    """The encoder; its states have the *shape* (B, L, D)."""

    def further_layer(self) -> FurtherLayer:
        return FurtherLayer(self.config, layer_idx=0)


class FurtherLayer(MarianEncoderLayer):
    """A layer that another model has, and whose weights begin as those of the encoder.

    As the first of its own stack it reads the first entry of `trainer.nn.attention.EncoderSyntax`.
    """

    own_initial_weights = True

    def reset_parameters(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)


class _Decoder(_Weights, MarianDecoder):
    """The decoder's layers."""


class GeneratingDecoder(PreTrainedModel, GenerationMixin):
    """A decoder over the states of any encoder, which predicts the next target piece.

    The output layer is the product with the target embeddings (tied weights). With ``output_mlp``,
    ``GELU(W o)`` goes before it (SG-Net for translation, equation 17).
    """

    config_class: type[PretrainedConfig] = TransformerConfig
    stack: type[PreTrainedModel] = _Decoder
    """Its layers; built from the configuration alone."""

    _supports_sdpa = True

    def __init__(self, config: PretrainedConfig, output_mlp: bool = False) -> None:
        super().__init__(config)
        self.decoder: Any = self.stack(config)
        self.hidden = nn.Linear(config.d_model, config.d_model) if output_mlp else None
        self._embeddings: tuple[nn.Embedding, ...] = ()
        self.post_init()  # type: ignore[no-untyped-call]

    def tie(self, embeddings: nn.Embedding) -> None:
        """Take the embeddings of the source, which stay a part of their encoder alone."""
        self.decoder.embed_tokens = None
        self._embeddings = (embeddings,)  # in a tuple: a module of a module would be saved twice

    def get_input_embeddings(self) -> nn.Module:
        own: nn.Module = self._embeddings[0] if self._embeddings else self.decoder.embed_tokens
        return own

    def forward(
        self,
        input_ids: Tensor,
        encoder_hidden_states: Tensor,
        encoder_attention_mask: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        **_: Any,
    ) -> CausalLMOutputWithCrossAttentions:
        """Logits of the piece after each. *Shape:* (B, T) to (B, T, V).

        ``input_ids`` have the start first; with a cache they are the pieces after the cached ones.
        """
        embeddings: Any = self.get_input_embeddings()
        output = self.run(
            input_ids,
            encoder_hidden_states,
            encoder_attention_mask,
            attention_mask=attention_mask,
            past_key_values=past_key_values,
            use_cache=use_cache,
        )
        states_BTD = output.last_hidden_state
        if self.hidden is not None:
            states_BTD = F.gelu(self.hidden(states_BTD))
        return CausalLMOutputWithCrossAttentions(
            logits=F.linear(states_BTD, embeddings.weight),
            past_key_values=output.past_key_values,
        )

    def run(
        self,
        input_ids: Tensor,
        encoder_hidden_states: Tensor,
        encoder_attention_mask: Tensor,
        **options: Any,
    ) -> Any:
        """The output of the layers, ``last_hidden_state`` (B, T, D)."""
        embeddings: Any = self.get_input_embeddings()
        return self.decoder(
            inputs_embeds=embeddings(input_ids),
            encoder_hidden_states=encoder_hidden_states,
            encoder_attention_mask=encoder_attention_mask,
            **options,
        )

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            init.xavier_uniform_(module.weight)
            init.zeros_(module.bias)


def decoder_config(
    encoder: PretrainedConfig, layers: int | None, vocabulary: int, pad: int, start: int, end: int
) -> TransformerConfig:
    """A decoder that fits an encoder: as wide, with as many heads, as deep unless told."""
    heads, width = int(encoder.num_attention_heads), int(encoder.hidden_size)
    return TransformerConfig(
        d_model=width,
        decoder_layers=layers or int(encoder.num_hidden_layers),
        encoder_layers=0,
        decoder_attention_heads=heads,
        encoder_attention_heads=heads,
        decoder_ffn_dim=first_setting(encoder, ("encoder_ffn_dim", "intermediate_size"), 4 * width),
        dropout=first_setting(encoder, ("dropout", "hidden_dropout_prob"), 0.1),
        attention_dropout=first_setting(
            encoder, ("attention_dropout", "attention_probs_dropout_prob"), 0.1
        ),
        activation_function="relu",
        scale_embedding=True,
        vocab_size=vocabulary,
        decoder_vocab_size=vocabulary,
        pad_token_id=pad,
        bos_token_id=start,
        decoder_start_token_id=start,
        eos_token_id=end,
        forced_eos_token_id=None,
        is_encoder_decoder=False,
        is_decoder=True,
    )


def first_setting(config: PretrainedConfig, names: Sequence[str], usual: float) -> Any:
    """The first of these settings that a family has, or what is usual."""
    return next((getattr(config, name) for name in names if hasattr(config, name)), usual)


AutoConfig.register(TransformerConfig.model_type, TransformerConfig)
AutoModel.register(TransformerConfig, TransformerEncoder)
