"""Outputs of encoders, heads and whole models.

Letters in shapes: ``B`` examples, ``N`` heads, ``L`` wordpieces, ``D`` width of the states, ``G``
width of the syntax states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor
from transformers.utils.generic import ModelOutput

from trainer.nn.piece_parser import PieceScores
from trainer.nn.rows import AttentionRows
from trainer.options.parser import MixedStates


@dataclass
class SyntaxEncoding(ModelOutput):
    """Output of an encoder.

    Attributes:
        last_hidden_state: States of the positions. *Shape:* (B, L, D).
        hidden_states: On request, the embeddings and the states of each layer, (B, L, D) each.
        attentions: On request, and from the eager implementation alone: one (B, N, L, L) per layer.
        syntax_states: States of the graph encoder, where there is one. *Shape:* (B, L, G).
        attention_rows: On request, computes rows of the last layer's attention weights.
        tree_scores: On request, of an encoder with a parser of pieces.
        last_memory: On request, of an encoder whose last layer is an LSTM: its memory behind the
            last word, and that of the other direction behind the first. *Shape:* (B, D).
    """

    last_hidden_state: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    syntax_states: Tensor | None = None
    attention_rows: AttentionRows | None = None
    tree_scores: PieceScores | None = None
    last_memory: Tensor | None = None


def layers_of(encoding: SyntaxEncoding, states: MixedStates) -> tuple[Tensor, ...]:
    """The last states, or those to mix. *Shape:* (B, L, D) each."""
    if states == "last":
        assert encoding.last_hidden_state is not None
        return (encoding.last_hidden_state,)
    assert encoding.hidden_states is not None
    return encoding.hidden_states[states == "layers" :]


class HeadOutput(NamedTuple):
    """Output of a task's head.

    Attributes:
        logits: By what they predict, such as a label column; float32.
        loss: The task's loss, a scalar; absent when the batch has no labels.
    """

    logits: dict[str, Tensor]
    loss: Tensor | None


@dataclass
class SyntaxOutput(ModelOutput):
    """Output of a whole model.

    Attributes:
        loss: What training minimises: ``task_loss`` plus, in training mode only, the weighted
            objectives. (The release of Syntax-MBERT also adds them when it evaluates.)
        task_loss: Of the head; absent when the batch has no labels.
        objectives: Each auxiliary loss by name, unweighted.
        logits: By what they predict; for a model that was called with tensors and predicts one
            thing, the tensor itself.
    """

    loss: Tensor | None = None
    task_loss: Tensor | None = None
    objectives: dict[str, Tensor] | None = None
    logits: dict[str, Tensor] | Tensor | None = None
