"""A BERT that is built new: its sizes, among a model's options, and its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from syntax.errors import SpecError
from trainer.options.checks import check_positive, check_range

if TYPE_CHECKING:
    from trainer.systems.microbert.options import MicroBertOptions
    from trainer.systems.udprlm.options import UdPrlmOptions

_COUNTS: Final = ("layers", "hidden_size", "heads", "feed_forward", "max_positions")


def check_bert(sizes: MicroBertOptions | UdPrlmOptions) -> None:
    """Check the sizes of a new BERT.

    Raises:
        SpecError: One is out of range.
    """
    for count in _COUNTS:
        check_positive(f"model.{count}", getattr(sizes, count))
    check_range("model.layer_dropout", sizes.layer_dropout, 0, 1)


def bert_config(sizes: MicroBertOptions | UdPrlmOptions) -> dict[str, Any]:
    """A BERT of these sizes, as transformers writes configurations.

    Raises:
        SpecError: The heads do not divide the width. (Settings arrive one by one, so that their
            options cannot check this.)
    """
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
