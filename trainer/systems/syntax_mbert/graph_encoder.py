"""The graph encoder of Syntax-MBERT by itself, to be trained on trees before a task.

Ahmad et al. 2021, section 2.4: it is trained on the trees of Universal Dependencies with the
distance and depth losses alone, then loaded into the whole model (`loading`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from torch import nn
from transformers import PreTrainedModel

from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.encoder import Encoder
from trainer.nn.stock import new_encoder
from trainer.systems.syntax_mbert.gat import graph_encoder
from trainer.systems.syntax_mbert.options import SyntaxGatOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class SyntaxGatEncoder(Encoder):
    """Word embeddings of a stock encoder, which stay as they are, and the graph encoder."""

    options: SyntaxGatOptions

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        options = self.options
        stock = pretrained if pretrained is not None else new_encoder(config)
        self.embeddings = cast(nn.Embedding, stock.get_input_embeddings()).requires_grad_(False)
        self.gat = graph_encoder(options, stock)
        self.width = self.syntax_width = options.syntax_size

    def forward(self, batch: SyntaxBatch, **_options: Any) -> SyntaxEncoding:
        states_BLG = self.gat(self.embeddings(batch.input_ids_BL), batch)
        return SyntaxEncoding(last_hidden_state=states_BLG, syntax_states=states_BLG)
