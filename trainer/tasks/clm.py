"""``clm.v1``: causal language modelling, over an encoder that reads from left to right.

Each piece is predicted from those before it in its sequence, the first special token among them,
and the last special token ends the text (Radford et al. 2019, "Language Models are Unsupervised
Multitask Learners"). The decoder is the product with the word embeddings.

Letters in shapes: ``B`` sequences, ``L`` positions, ``M`` predicted pieces, ``V`` ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.metrics import share
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.nn.encoder import Encoder
from trainer.nn.stock import is_causal
from trainer.tasks.base import Baseline, Head, Task
from trainer.tasks.mlm import PIECES, MlmScorer
from trainer.tasks.next_pieces import NEXT_ARRAYS, POSITIONS, TARGETS, NextPieces

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig

_BATCH: Final = 256
"""Sequences that the baseline reads at once."""


class Clm(Task):
    """Causal language modelling; the stream gives the targets."""

    metric = "accuracy"
    extras: ClassVar[tuple[str, ...]] = NEXT_ARRAYS

    def scorer(self, data: FeatureDataset) -> MlmScorer:  # noqa: ARG002
        return MlmScorer(TARGETS)

    def baseline(self, train: FeatureDataset) -> Baseline:
        most = int(_counts(train).argmax())

        def score(data: FeatureDataset) -> float:
            counts = _counts(data)
            return share(int(counts[most]), int(counts.sum()))

        return Baseline("most frequent piece", score)


class ClmHead(Head):
    """The product of states and word embeddings (tied weights, as in GPT-2)."""

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        self._encoder: tuple[Encoder, ...] = ()

    def connect(self, encoder: Encoder) -> None:
        if encoder.stock is None or not is_causal(encoder.stock):
            raise SpecError(
                "clm.v1 predicts each piece from those before it, and this encoder reads those "
                "after it too; take a causal one, such as GPT-2 or parsebank-micro-causal"
            )
        self._encoder = (encoder,)  # in a tuple: a module of a module would be saved twice

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits of predicted pieces, (M, V), and the loss; without targets of all, (B, L, V)."""
        states_BLD = encoding.last_hidden_state
        assert states_BLD is not None
        if POSITIONS not in batch.extras:
            return HeadOutput({PIECES: self._logits(states_BLD)}, None)
        positions_M, targets_M = map(batch.extra, NEXT_ARRAYS)
        logits_MV = self._logits(states_BLD.flatten(0, 1)[positions_M])
        total = F.cross_entropy(logits_MV, targets_M, reduction="sum")
        return HeadOutput({PIECES: logits_MV}, total / max(1, len(targets_M)))

    def _logits(self, states: Tensor) -> Tensor:
        (encoder,) = self._encoder
        assert encoder.stock is not None
        words: Any = encoder.stock.get_input_embeddings()
        return F.linear(states, words.weight).float()


def _counts(data: FeatureDataset) -> NDArray[np.int64]:
    """Counts of the ids to be predicted in whole texts. *Shape:* (V,)."""
    counts = np.zeros(data.special_tokens.vocab_size, np.int64)
    for arrays in data.stream(batch_size=_BATCH, max_length=None, matrices=()):
        targets_M = NextPieces().sample(arrays, (), 0, 0)[TARGETS]
        counts += np.bincount(targets_M, minlength=len(counts))
    return counts
