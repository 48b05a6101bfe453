"""A BERT that is built new: its sizes, among a model's options, and its configuration."""

from __future__ import annotations

from typing import Any, Protocol

from syntax.errors import SpecError


class BertSizes(Protocol):
    """The sizes among the options of a system that builds a BERT."""

    @property
    def layers(self) -> int:
        """Of the encoder."""

    @property
    def hidden_size(self) -> int:
        """Width of the states."""

    @property
    def heads(self) -> int:
        """Of each layer; they divide the width."""

    @property
    def feed_forward(self) -> int:
        """Width of the feed-forward networks."""

    @property
    def max_positions(self) -> int:
        """Pieces that there are positions for."""

    @property
    def layer_dropout(self) -> float:
        """Of states and of attention weights."""


def bert_config(sizes: BertSizes) -> dict[str, Any]:
    # Settings arrive one by one, so that their options cannot check this.
    if sizes.hidden_size % sizes.heads:
        raise SpecError(
            f"model.hidden_size is {sizes.hidden_size}, which {sizes.heads} heads cannot divide; "
            "change model.hidden_size or model.heads"
        )
    return {
        "model_type": "bert",
        "num_hidden_layers": sizes.layers,
        "hidden_size": sizes.hidden_size,
        "num_attention_heads": sizes.heads,
        "intermediate_size": sizes.feed_forward,
        "max_position_embeddings": sizes.max_positions,
        "hidden_dropout_prob": sizes.layer_dropout,
        "attention_probs_dropout_prob": sizes.layer_dropout,
    }
