"""PLBART: an encoder, and a decoder that belongs to the model and not to a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn
from transformers import PreTrainedModel

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.bart import GeneratingBart, bart_decoder
from trainer.nn.earlier import check_same_tokenizer, run_weights
from trainer.nn.encoder import StockEncoder
from trainer.nn.transformer import GeneratingDecoder
from trainer.systems.plbart.options import PlbartOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig
    from trainer.options import Recipe
    from trainer.requirements import DataProfile


class PlbartEncoder(StockEncoder):
    """The states of the encoder; or, to classify, those of the decoder over the same pieces."""

    options: PlbartOptions

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        options = self.options
        self.decoder: GeneratingBart = bart_decoder(self.encoder.config)
        self.decoder.tie(cast(nn.Embedding, self.encoder.get_input_embeddings()))
        if options.states == "decoder":
            self.gives = frozenset()  # type: ignore[misc]

    @property
    def own_decoder(self) -> GeneratingDecoder:
        return self.decoder

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        """Encode a batch; to classify, the decoder reads the pieces behind the last of them."""
        encoding = super().forward(batch, **options)
        if self.options.states == "encoder":
            return encoding
        assert encoding.last_hidden_state is not None
        ids_BL = batch.input_ids_BL
        last_B1 = ids_BL.gather(1, batch.lengths_B[:, None].long() - 1)
        before_BL = torch.cat([last_B1, ids_BL[:, :-1]], 1)
        output = self.decoder.run(before_BL, encoding.last_hidden_state, batch.attention_mask_BL)
        return SyntaxEncoding(last_hidden_state=output.last_hidden_state)

    def at_step(self, step: int) -> None:
        dropout = self.options.dropout_at(step)
        for module in self.modules() if dropout is not None else ():
            if isinstance(getattr(module, "dropout", None), float):  # so transformers' layers
                module.dropout = dropout  # type: ignore[assignment]

    def prepare(self, recipe: Recipe, profile: DataProfile) -> None:
        start = recipe.model.starts_from
        if start is None:
            return
        if not recipe.model.any_tokenizer:
            check_same_tokenizer(start, profile.requirements)
        weights, own = run_weights(start, "encoder"), self.state_dict()
        wrong = [name for name in own if weights.get(name, own[name][:0]).shape != own[name].shape]
        if wrong:
            raise SpecError(
                f"the weights in {start} are those of another model ({', '.join(wrong[:3])} "
                "differ); name a run of plbart.v1"
            )
        self.load_state_dict(weights)
