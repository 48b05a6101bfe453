"""A stock encoder as it is; objectives teach it trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from transformers import PreTrainedModel

from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.encoder import Encoder
from trainer.nn.stock import new_encoder, run_encoder

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class StockEncoder(Encoder):
    """The states of a stock encoder."""

    gives: ClassVar[frozenset[str]] = frozenset({"hidden_states", "attentions"})

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        self.encoder = pretrained if pretrained is not None else new_encoder(config)
        self.width = int(self.encoder.config.hidden_size)

    @property
    def stock(self) -> PreTrainedModel:
        return self.encoder

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        output = run_encoder(self.encoder, batch, **options)
        return SyntaxEncoding(
            last_hidden_state=output.last_hidden_state,
            hidden_states=output.get("hidden_states"),
            attentions=output.get("attentions"),
        )
