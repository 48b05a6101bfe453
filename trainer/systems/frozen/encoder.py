"""States of words from an encoder that does not learn, as they are.

Letters in shapes: ``B`` examples, ``W`` words, ``D`` width of the states.
"""

from __future__ import annotations

from typing import Any

from torch import nn
from transformers import PreTrainedModel

from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import SyntaxEncoding
from trainer.options import FrozenOptions


class FrozenEncoder(nn.Module):
    """The stored states of the words; nothing here learns.

    Args:
        config: Says how wide the states are.
        pretrained: Not read: what the encoder gives has been stored (`frozen.states`).
    """

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:  # noqa: ARG002
        super().__init__()
        assert isinstance(config.model_options(), FrozenOptions)
        self.width = int(config.encoder_config().hidden_size)

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:  # noqa: ARG002
        """The states, float32. *Shape:* (B, W, D)."""
        return SyntaxEncoding(last_hidden_state=batch.extra("word_states").float())
