"""The encoder of the order-free parser: words and tags, then self-attention or LSTMs.

The dissertation's chapter 3. ROOT stands before the first word: by the distance from it the layers,
which know no order, tell how far a word is from the beginning. ``L`` positions are ROOT and words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from syntax.errors import SpecError
from syntax.trees.ud import UPOS
from syntax.variant import is_released
from trainer.batch import EXTRA_TAGS, SyntaxBatch, tag_ids
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.biaffine import keep_torch_weights
from trainer.nn.context import sinusoids
from trainer.nn.encoder import Encoder
from trainer.systems.orderfree.attention import SelfAttention
from trainer.systems.orderfree.options import OrderFreeOptions
from trainer.systems.orderfree.rnn import VariationalBiLstm

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig
    from trainer.options import Recipe
    from trainer.requirements import DataProfile

BUCKETS: Final = (10, 15, 20, 25, 30, 35, 40, 50, 60, 70, 80, 90, 100, 140)
"""Widths to which the released code pads sentences, each wider than its sentences with ROOT."""


class TagEmbedding(nn.Embedding):
    """Embeddings whose numbers have variance 1 / width at first, as the release draws them."""

    def reset_parameters(self) -> None:
        bound = (3 / self.embedding_dim) ** 0.5
        nn.init.uniform_(self.weight, -bound, bound)


class OrderFreeEncoder(Encoder):
    """States of ROOT and of the words."""

    options: OrderFreeOptions

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        options = self.options
        self.upos = TagEmbedding(len(UPOS) + EXTRA_TAGS, options.upos_width)
        width = options.upos_width
        if options.words == "vectors":
            width += options.vector_width
        elif options.words == "states":
            width += int(config.encoder_config().hidden_size)
        if options.position == "absolute" and options.context == "selfatt":
            width += options.position_width
        self.context: SelfAttention | VariationalBiLstm
        if options.context == "selfatt":
            self.context, self.width = SelfAttention(width, options), width
        else:
            sizes = (options.rnn_width, options.rnn_layers, options.rnn_dropout)
            self.context = VariationalBiLstm(width, *sizes)
            self.width = self.context.width
            self.gives = frozenset({"last_memory"})  # type: ignore[misc]
        keep_torch_weights(self)

    def prepare(self, recipe: Recipe, profile: DataProfile) -> None:  # noqa: ARG002
        if self.options.root_position == "none" and getattr(recipe.task, "root", "") == "first":
            raise SpecError(
                "model.root_position=none reads no ROOT, and task.root=first takes its state; set "
                "task.root=learned"
            )

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        states_BLD, real_BL = self._input(batch), batch.attention_mask_BL
        if isinstance(self.context, VariationalBiLstm):
            if not options.get("output_last_memory"):
                return SyntaxEncoding(last_hidden_state=self.context(states_BLD, real_BL))
            states_BLD, memory_BD = self.context.with_memory(states_BLD, real_BL)
            return SyntaxEncoding(last_hidden_state=states_BLD, last_memory=memory_BD)
        length = states_BLD.shape[1]
        seen_BL = real_BL
        if is_released(self.options.padding_mask):
            states_BLD, seen_BL = self._with_padding(states_BLD, real_BL)
        if self.options.position == "absolute":
            places_LD = sinusoids(states_BLD.shape[1], self.options.position_width)
            places_LD[0] = 0  # as in the released code, whose table begins with padding
            places_BLD = places_LD.to(states_BLD).expand(states_BLD.shape[0], -1, -1)
            states_BLD = torch.cat([states_BLD, places_BLD], dim=2)
        # A row without words would attend to nothing, which is NaN; it may attend to all.
        seen_BL = seen_BL | ~seen_BL.any(1, keepdim=True)
        found_BLD = self.context(states_BLD, seen_BL)[:, :length]
        return SyntaxEncoding(last_hidden_state=found_BLD)

    def _input(self, batch: SyntaxBatch) -> Tensor:
        upos_BLD: Tensor = self.upos(tag_ids(batch, batch.upos_BL, len(UPOS)))
        options = self.options
        upos_BLD = F.dropout1d(upos_BLD, options.tag_dropout, self.training)
        if options.words == "none":
            return upos_BLD
        words_BLD = batch.extra("word_states").float()
        if self.training and options.words == "vectors" and options.unknown_share:
            drawn_BL = torch.rand(words_BLD.shape[:2], device=words_BLD.device)
            unknown_BL = batch.extra("rare_words") & (drawn_BL < options.unknown_share)
            words_BLD = words_BLD.masked_fill(unknown_BL[:, :, None], 0.0)
        words_BLD = F.dropout1d(words_BLD, options.word_dropout, self.training)
        return torch.cat([words_BLD, upos_BLD], dim=2)

    def _with_padding(self, states_BLD: Tensor, real_BL: Tensor) -> tuple[Tensor, Tensor]:
        """Pad to the widest bucket; a sentence sees its own bucket, whatever the batch."""
        ends = torch.tensor(BUCKETS, device=real_BL.device)
        counts_B = real_BL.sum(1)
        places_B = torch.searchsorted(ends, counts_B, right=True)
        widths_B = torch.where(
            places_B < len(BUCKETS), ends[places_B.clamp(max=len(BUCKETS) - 1)], counts_B
        )
        longest = max(int(widths_B.max()), states_BLD.shape[1])
        upos_D = self.upos.weight[0]
        padding_D = F.pad(upos_D, (states_BLD.shape[2] - len(upos_D), 0))
        missing = longest - states_BLD.shape[1]
        further = padding_D.expand(states_BLD.shape[0], missing, -1)
        seen_BL = torch.arange(longest, device=real_BL.device) < widths_B[:, None]
        return torch.cat([states_BLD, further], dim=1), seen_BL
