"""Options of MicroBERT (Gessler and Schneider 2023; Gessler and Zeldes 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from syntax.options import Count, NonNegativeInt, Probability
from trainer.options.model import bert_config
from trainer.systems.sla.options import SlaOptions


@dataclass(frozen=True, slots=True)
class MicroBertOptions(SlaOptions):
    """A small BERT, built new for the tokenizer of the data.

    With ``weights=pretrained`` it is ``encoder``, and the sizes and positions here are not read.

    Attributes:
        layers, hidden_size, heads, feed_forward: Size of the encoder.
        positions: ``relative_key_query``, ``relative_key``, or BERT's own, ``absolute``.
        max_positions: Pieces that it has positions for.
        layer_dropout: In the encoder: of states and of attention weights.
        sla: Let its layers attend locally too (`trainer.systems.sla`).
        threshold: Edges within which a piece is near.
    """

    name: str = "microbert.v1"
    encoder: str = ""
    weights: Literal["pretrained", "random"] = "random"
    layers: Count = 3
    hidden_size: Count = 128
    heads: Count = 8
    feed_forward: Count = 512
    positions: Literal["relative_key_query", "relative_key", "absolute"] = "relative_key_query"
    max_positions: Count = 512
    layer_dropout: Probability = 0.1
    sla: bool = False
    threshold: NonNegativeInt = 4

    @property
    def learned_with(self) -> tuple[str, ...]:
        return ("sla", "threshold", "window", "gate", "punctuation", "local_layers")

    @property
    def attends_locally(self) -> bool:
        return self.use_syntax and self.sla

    def new_encoder(self) -> dict[str, Any] | None:
        if self.weights == "pretrained":
            return None
        content = bert_config(self)
        if self.positions == "absolute":
            return content
        relative = {"model_type": RELATIVE_BERT, "position_embedding_type": self.positions}
        return {**content, **relative}


RELATIVE_BERT = "parsebank-relative-bert"
"""The type of `trainer.nn.relative.RelativeBertModel`, which needs torch."""
