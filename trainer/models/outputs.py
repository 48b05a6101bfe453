"""Outputs of encoders, heads and whole models."""

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
    """Output of an encoder; all but the first and ``syntax_states`` on request.

    Attributes:
        last_hidden_state: States of the positions. *Shape:* (B, L, D).
        hidden_states: The embeddings and the states of each layer, (B, L, D) each.
        attentions: From the eager implementation alone: one (B, N, L, L) per layer.
        syntax_states: States of the graph encoder, where there is one. *Shape:* (B, L, G).
        attention_rows: Computes rows of the last layer's attention weights.
        last_memory: Of an LSTM as last layer, behind the last word, and, of the other direction,
            behind the first. *Shape:* (B, D).
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
    """Output of a task's head: float32 logits by what they predict, and a loss with labels."""

    logits: dict[str, Tensor]
    loss: Tensor | None


@dataclass
class SyntaxOutput(ModelOutput):
    """Output of a whole model.

    Attributes:
        loss: ``task_loss`` plus, in training mode only, the weighted objectives. (The release of
            Syntax-MBERT also adds them when it evaluates.)
        task_loss: Absent when the batch has no labels.
        objectives: Each auxiliary loss by name, unweighted.
        logits: By what they predict; a tensor, if a call with tensors predicts one thing.
    """

    loss: Tensor | None = None
    task_loss: Tensor | None = None
    objectives: dict[str, Tensor] | None = None
    logits: dict[str, Tensor] | Tensor | None = None
