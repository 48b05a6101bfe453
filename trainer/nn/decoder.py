"""The decoder of masked language modelling, from states back to pieces.

Letters in shapes: ``B`` sequences, ``L`` positions, ``M`` predicted pieces, ``D`` width
of the states, ``E`` width of the word embeddings, ``V`` ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.masking import POSITIONS, TARGETS
from trainer.nn.encoder import Encoder

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class PieceDecoder(nn.Module):
    """BERT's decoder: linear, GELU, LayerNorm, and the product with the word embeddings.

    The encoder owns these (tied weights). MicroBERT's release has no ``output_bias``.
    """

    def __init__(self, config: SyntaxConfig, width: int, output_bias: bool = True) -> None:
        super().__init__()
        stock = config.encoder_config()
        # ELECTRA and ALBERT embed pieces in a space of their own.
        size = int(getattr(stock, "embedding_size", None) or stock.hidden_size)
        self.dense = nn.Linear(width, size)
        self.norm = nn.LayerNorm(size, eps=getattr(stock, "layer_norm_eps", 1e-12))
        bias = nn.Parameter(torch.zeros(stock.vocab_size)) if output_bias else None
        self.register_parameter("bias", bias)
        self._encoder: tuple[Encoder, ...] = ()

    def tie(self, encoder: Encoder) -> None:
        """Take the word embeddings of an encoder, which stay a part of that one alone."""
        if encoder.stock is None:
            raise SpecError(
                "masked language modelling predicts the pieces that an encoder reads, and this "
                "model reads stored states of words; take a model of wordpieces, such as sla.v1"
            )
        self._encoder = (encoder,)  # in a tuple: a module of a module would be saved twice

    def forward(self, states: Tensor) -> Tensor:
        """Logits of the ids. *Shape:* (..., V), float32."""
        (encoder,) = self._encoder
        assert encoder.stock is not None
        words: Any = encoder.stock.get_input_embeddings()
        bias: Any = self.bias
        found: Tensor = F.linear(self.norm(F.gelu(self.dense(states))), words.weight, bias)
        return found.float()

    def predict(self, states_BLD: Tensor, batch: SyntaxBatch) -> tuple[Tensor, Tensor]:
        """Logits of the predicted pieces, *shape* (M, V), and the mean loss; 0 without any."""
        positions_M, targets_M = batch.extra(POSITIONS), batch.extra(TARGETS)
        logits_MV = self(states_BLD.flatten(0, 1)[positions_M])
        total = F.cross_entropy(logits_MV, targets_M, reduction="sum")
        return logits_MV, total / max(1, len(targets_M))
