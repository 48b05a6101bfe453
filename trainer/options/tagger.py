"""Options of a tagger of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from syntax.options import Count, NonNegativeInt, Probability, check_fields
from trainer.options.parser import MixedStates


@dataclass(frozen=True, slots=True)
class TaggerOptions:
    """Layers between an encoder and the tags of tokens.

    Attributes:
        states: ``last``, or a learned mean: ``mix``, of the embeddings and all layers;
            ``layers``, of the layers alone.
        pieces: A token's state is that of its ``first`` piece, or the ``mean`` of all its pieces.
        lstm_layers: Layers of a bidirectional LSTM over tokens; 0 for none.
        lstm_width: Of each direction.
        lstm_dropout: Of its input, between its layers, and behind it.
        crf: ``bio`` or ``bioul``: a conditional random field finds the tags of a whole sequence,
            and only such as the scheme allows. With ``bioul`` it knows where mentions end; scores
            are of the dataset's own tags. ``none``: each token has its best tag.
        crf_ends: Whether the field also scores which tag is first, and which is last.
        crf_loss: ``mean`` or ``sum`` of the losses of a batch's sequences.
    """

    states: MixedStates = "last"
    pieces: Literal["first", "mean"] = "first"
    lstm_layers: NonNegativeInt = 0
    lstm_width: Count = 200
    lstm_dropout: Probability = 0.5
    crf: Literal["none", "bio", "bioul"] = "none"
    crf_ends: bool = True
    crf_loss: Literal["mean", "sum"] = "mean"

    def __post_init__(self) -> None:
        check_fields("task.tagger", self)


LINEAR: Final = TaggerOptions()
"""One linear map from the last states."""
