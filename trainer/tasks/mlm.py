"""``mlm.v1``: masked language modelling, over any encoder that reads wordpieces.

Devlin et al. 2019, "BERT" (https://aclanthology.org/N19-1423), section 3.1. Dev is masked too, in
the same way at every evaluation.

Letters in shapes: ``B`` sequences, ``L`` positions, ``M`` predicted pieces, ``V`` ids.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.masking import MASKED_ARRAYS, POSITIONS, TARGETS
from trainer.metrics import NamedScores, share
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.nn.decoder import PieceDecoder
from trainer.nn.earlier import run_weights
from trainer.nn.encoder import Encoder
from trainer.tasks.base import Head, MeanLoss, Task
from trainer.tasks.options import MlmOptions

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig
    from trainer.options import Recipe
    from trainer.requirements import DataProfile

PIECES = "pieces"
"""Name of the logits."""


class Mlm(Task):
    """Masked language modelling; the stream gives the targets."""

    metric = "accuracy"
    extras: ClassVar[tuple[str, ...]] = MASKED_ARRAYS

    def scorer(self, data: FeatureDataset) -> MlmScorer:  # noqa: ARG002
        return MlmScorer()


class MlmHead(Head):
    """The decoder (`trainer.nn.decoder.PieceDecoder`), at the predicted pieces alone."""

    options: MlmOptions

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        options = self.options
        self.decoder = PieceDecoder(config, width, options.output_bias)

    def connect(self, encoder: Encoder) -> None:
        self.decoder.tie(encoder)

    def prepare(self, recipe: Recipe, profile: DataProfile) -> None:  # noqa: ARG002
        """Take the decoder of the run that the model starts from, if that has one."""
        if recipe.model.starts_from is None:
            return
        found = run_weights(recipe.model.starts_from, "head.decoder")
        if found.keys() == self.decoder.state_dict().keys():
            self.decoder.load_state_dict(found)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits of predicted pieces, (M, V), and the loss; without masks of all, (B, L, V)."""
        states_BLD = encoding.last_hidden_state
        assert states_BLD is not None
        if POSITIONS not in batch.extras:
            return HeadOutput({PIECES: self.decoder(states_BLD)}, None)
        logits_MV, loss = self.decoder.predict(states_BLD, batch)
        return HeadOutput({PIECES: logits_MV}, loss)


@dataclass(frozen=True, slots=True)
class MlmScores(NamedScores):
    """Scores over predicted pieces; ``loss`` is in nats, and ``perplexity`` its exponential."""

    examples: int
    pieces: int
    accuracy: float
    perplexity: float
    loss: float

    metric = "accuracy"


class MlmScorer:
    """Counts right pieces, batch by batch; reads the device once, at the end."""

    def __init__(self, targets: str = TARGETS) -> None:
        self._targets = targets
        self._examples = self._pieces = 0
        self._right: list[Tensor] = []
        self._loss = MeanLoss()

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        targets_M = batch.extra(self._targets)
        self._examples += len(batch)
        self._pieces += len(targets_M)
        self._right.append((output.logits[PIECES].argmax(-1) == targets_M).sum())
        self._loss.add(output.task_loss, torch.tensor(len(targets_M)))

    def scores(self) -> MlmScores:
        right, loss = sum(int(count) for count in self._right), self._loss.mean()
        # Beyond this a double has no exponential, and a model knows nothing.
        perplexity = math.exp(min(loss, 700.0))
        return MlmScores(self._examples, self._pieces, share(right, self._pieces), perplexity, loss)

    def predictions(self) -> list[Prediction]:
        """Nothing: the examples have no labels of their own."""
        return []
