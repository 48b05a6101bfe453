"""Masked language modelling beside another task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.decoder import PieceDecoder
from trainer.nn.encoder import Encoder
from trainer.objectives.options import MlmObjectiveOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class MaskedPieces(nn.Module):
    """`trainer.nn.decoder.PieceDecoder` over the last states; the task reads masked text, too."""

    needs: frozenset[str] = frozenset()

    def __init__(
        self, options: MlmObjectiveOptions, config: SyntaxConfig, encoder: Encoder
    ) -> None:
        super().__init__()
        self.options = options
        self.decoder = PieceDecoder(config, encoder.width, options.output_bias)
        self.decoder.tie(encoder)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor:
        """The loss, a scalar; 0 in evaluation, which masks nothing."""
        assert encoding.last_hidden_state is not None
        _, loss = self.decoder.predict(encoding.last_hidden_state, batch)
        return loss
