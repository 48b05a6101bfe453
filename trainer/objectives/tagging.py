"""A tag for each word as an auxiliary loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.batches import IGNORE
from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding, layers_of
from trainer.nn.encoder import Encoder
from trainer.nn.words import ScalarMix, WordStates
from trainer.objectives.base import needed_for_mix
from trainer.objectives.options import XposTaggingOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class WordTagging(nn.Module):
    """A linear map from the state of each word to its tag."""

    def __init__(self, options: XposTaggingOptions, config: SyntaxConfig, encoder: Encoder) -> None:
        super().__init__()
        if not options.names:
            raise SpecError(
                f"objectives.{options.name}.names is empty, and no training examples have filled "
                "it; name the tags"
            )
        self.options, self.needs = options, needed_for_mix(options.states)
        stock = config.encoder_config()
        width = int(stock.hidden_size) if self.needs else encoder.width
        self.mix = ScalarMix(config.state_count()) if options.states == "mix" else None
        self.pool = WordStates(width, options.pieces)
        self.output = nn.Linear(width, len(options.names))

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor:
        """The mean over sequences of the mean cross-entropy of their words; a scalar.

        Sequences without a tag to learn do not count; a batch without any has the loss 0.
        """
        pieces_BL, sources_BW, tags_BW = (batch.extra(name) for name in self.options.arrays())
        layers = layers_of(encoding, self.options.states)
        states_BLD = layers[-1] if self.mix is None else self.mix(layers)
        states_BWD = self.pool(states_BLD, pieces_BL, sources_BW)
        scores_BWT = self.output(states_BWD).float()
        losses_BW = F.cross_entropy(
            scores_BWT.transpose(1, 2), tags_BW, ignore_index=IGNORE, reduction="none"
        )
        counts_B = (tags_BW != IGNORE).sum(1)
        means_B = losses_BW.sum(1) / counts_B.clamp(min=1)
        return means_B.sum() / torch.count_nonzero(counts_B).clamp(min=1)
