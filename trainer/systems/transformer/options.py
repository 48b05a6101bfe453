"""Options of the Transformer (Vaswani et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from syntax.errors import SpecError
from syntax.options import Count, Probability
from trainer.options.model import ModelOptions

TRANSFORMER: Final = "parsebank-transformer"
"""The type of `trainer.nn.transformer.TransformerEncoder`, which needs torch."""


@dataclass(frozen=True, slots=True)
class TransformerOptions(ModelOptions):
    """The encoder of the published base Transformer, built new for the tokenizer of the data.

    With ``weights=pretrained`` it is the exported one in ``encoder``, and the sizes here are not
    read.

    Attributes:
        layers, hidden_size, heads, feed_forward: Size of the encoder, and of a decoder over it.
        max_positions: Pieces that it has positions for; positions are sinusoidal.
        layer_dropout: In encoder and decoder: of embeddings, outputs of sub-layers, and attention.
    """

    name: str = "transformer.v1"
    encoder: str = ""
    weights: Literal["pretrained", "random"] = "random"
    layers: Count = 6
    hidden_size: Count = 512
    heads: Count = 8
    feed_forward: Count = 2048
    max_positions: Count = 1024
    layer_dropout: Probability = 0.1

    def new_encoder(self) -> dict[str, Any] | None:
        if self.weights == "pretrained":
            return None
        if self.hidden_size % self.heads:
            raise SpecError(
                f"model.hidden_size is {self.hidden_size}, which {self.heads} heads cannot divide; "
                "change model.hidden_size or model.heads"
            )
        return {
            "model_type": TRANSFORMER,
            "num_hidden_layers": self.layers,
            "encoder_layers": self.layers,
            "d_model": self.hidden_size,
            "encoder_attention_heads": self.heads,
            "encoder_ffn_dim": self.feed_forward,
            "max_position_embeddings": self.max_positions,
            "dropout": self.layer_dropout,
            "attention_dropout": self.layer_dropout,
            "activation_function": "relu",
            "scale_embedding": True,
            "is_encoder_decoder": False,
        }
