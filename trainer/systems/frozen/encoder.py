"""States of words from an encoder that does not learn, as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers import PreTrainedModel

from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.encoder import Encoder
from trainer.systems.frozen.options import FrozenOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class FrozenEncoder(Encoder):
    """Gives the stored states of the words; it has no weights."""

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        assert isinstance(config.model_options(), FrozenOptions)
        self.width = int(config.encoder_config().hidden_size)

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:  # noqa: ARG002
        """The states, float32. *Shape:* (B, W, D): examples, words, width."""
        return SyntaxEncoding(last_hidden_state=batch.extra("word_states").float())
