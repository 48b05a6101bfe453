"""A task: options, the targets that models learn from, a head, and a scorer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.models.outputs import HeadOutput, SyntaxEncoding

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig
    from trainer.nn.encoder import Encoder
    from trainer.options import Recipe
    from trainer.requirements import DataProfile

Arrays = Mapping[str, Any]
"""A batch as a stream gives it: NumPy arrays and lists by name."""


class Scores(Protocol):
    """The outcome of one evaluation."""

    @property
    def examples(self) -> int: ...

    @property
    def headline(self) -> float:
        """The one number that models are selected on; higher is better."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Every number by name, as plain JSON; ``loss`` among them."""
        ...


class Scorer(Protocol):
    """Collects predictions, batch by batch."""

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        """Take a `trainer.models.outputs.SyntaxOutput`; ``batch.arrays`` has offsets and labels."""
        ...

    def scores(self) -> Scores: ...

    def predictions(self) -> list[Prediction]:
        """The prediction of each example taken, in order, unlabelled examples included.

        A metric of the scores that is a ratio of sums over examples is among the shares, under
        the same name.
        """
        ...


class MeanLoss:
    """The mean loss of an evaluation over labels, not batches; reads the device at the end."""

    def __init__(self) -> None:
        self._sums: list[Tensor] = []
        self._counts: list[Tensor] = []

    def add(self, mean: Tensor, count: Tensor) -> None:
        """Take the mean loss over ``count`` labels; a NaN over no labels has no weight."""
        self._sums.append(mean.detach().nan_to_num() * count)
        self._counts.append(count)

    def mean(self) -> float:
        """The mean over all labels; 0 without any."""
        total = sum(int(count) for count in self._counts)
        return sum(float(part) for part in self._sums) / total if total else 0.0


@dataclass(frozen=True, slots=True)
class Baseline:
    """A score without a model, by the headline metric; ``name`` says how it predicts."""

    name: str
    score: Callable[[FeatureDataset], float]


class Task:
    """The base of tasks: targets for a model to learn, and the scoring of its predictions.

    Labels come in the order of ``options.columns()``; a task refuses a kind that it cannot learn.
    """

    metric: str
    """Name of the headline metric, a key of the scores."""

    stream_options: ClassVar[Mapping[str, Any]] = {}
    """Demands on batches beside the usual, as options of `syntax.batches.AssemblySpec`."""

    extras: ClassVar[tuple[str, ...]] = ()
    """Further arrays of the stream that the head reads (`SyntaxBatch.extras`)."""

    def __init__(self, options: Any, labels: Mapping[str, LabelSpec]) -> None:
        del options, labels

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:  # noqa: ARG002
        """Targets of the head by name, one row per sequence of the batch.

        Predicted pieces are not rows of sequences, so they are among ``extras``.
        """
        return {}

    def scorer(self, data: FeatureDataset) -> Scorer:
        raise NotImplementedError

    def baseline(self, train: FeatureDataset) -> Baseline | None:  # noqa: ARG002
        """The baseline that knows these training examples; None for a task that has none."""
        return None


class Head(nn.Module):
    """The base of every task's head: from an encoder's states to predictions and the task's loss.

    Attributes:
        needs: Demands on the encoder beside its last states (`Encoder.gives`).
        options: Of the task; a subclass annotates them with their own class.
    """

    needs: frozenset[str] = frozenset()
    options: Any

    def __init__(self, config: SyntaxConfig, width: int) -> None:  # noqa: ARG002
        super().__init__()
        self.options = config.task_options()

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Predictions, and the loss when the batch carries the targets of the task."""
        raise NotImplementedError

    def connect(self, encoder: Encoder) -> None:
        """Take what the head shares with the encoder, such as its word embeddings."""

    def prepare(self, recipe: Recipe, profile: DataProfile) -> None:
        """Finish a new model, which is not loaded from a folder: called once, before training."""
