"""Words of a sentence, or their translations: the baseline CL_Trans_GCN.

Liu et al. (2019, https://aclanthology.org/D19-1068) choose each word's translation among the
nearest words of the target language by its context, and train on the sentence and on its
translation, which has the same tree. Layers as in the release of GATE (``clie/model/cltrans.py``):
a Transformer with relative positions, then one score for a word's state beside each candidate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor, nn

from trainer.systems.gate.attention import (
    DistanceLayer,
    RelativePositions,
    head_weights,
    sequence_positions,
)

if TYPE_CHECKING:
    from trainer.systems.gate.options import GateOptions

_DROPOUT: Final = 0.2  # trans_drop of the scripts
_POSITIONS: Final = 10  # max_relative_pos


class Translation(nn.Module):
    """Half of the sentences, drawn, are read in the other language.

    The release adds the losses of both readings, and its program for that is missing; a drawn
    reading has half that loss in expectation.
    """

    def __init__(self, width: int, options: GateOptions) -> None:
        super().__init__()
        self.choice, self.heads = options.choice, options.heads
        hidden = options.heads * options.head_size
        sizes = (options.heads, options.head_size, options.feed_forward)
        self.before, self.after = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.layer = DistanceLayer(hidden, *sizes, _DROPOUT)
        self.positions = RelativePositions(options.head_size, _POSITIONS)
        self.score = nn.Linear(2 * width, 1)

    def forward(self, words_BWD: Tensor, candidates_BWKD: Tensor, real_BW: Tensor) -> Tensor:
        """The words, or their translations, of each sentence. *Shape:* (B, W, D)."""
        translated_BWD = self.translate(words_BWD, candidates_BWKD, real_BW)
        drawn_B11 = torch.rand(len(words_BWD), 1, 1, device=words_BWD.device) < 0.5
        return torch.where(drawn_B11, translated_BWD, words_BWD)

    def translate(self, words_BWD: Tensor, candidates_BWKD: Tensor, real_BW: Tensor) -> Tensor:
        """Candidates mixed by their probabilities; ``best`` takes the most probable one.

        No gradient of ``best`` reaches the scores, so that the choice is never learned.
        """
        shape = (*words_BWD.shape[:2], -1)
        relative = self.positions(sequence_positions(shape[1], real_BW.device).expand(*shape))
        free = head_weights(None, real_BW, self.heads, ())
        context_BWD = self.after(self.layer(self.before(words_BWD), free, relative))
        beside_BWKD = context_BWD[:, :, None].expand_as(candidates_BWKD)
        scores_BWK1 = self.score(torch.cat([beside_BWKD, candidates_BWKD], -1))
        shares_BWK1 = torch.softmax(scores_BWK1, 2)
        if self.choice == "best":
            best_BW11 = scores_BWK1.argmax(2, keepdim=True)
            shares_BWK1 = torch.zeros_like(shares_BWK1).scatter(2, best_BW11, 1.0)
        return (shares_BWK1 * candidates_BWKD).sum(2)
