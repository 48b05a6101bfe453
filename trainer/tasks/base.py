"""What a task is: the labels it reads, what models learn from them, how predictions are scored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from syntax.examples import LabelSpec
from syntax.registry import Registry
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.options import TaskOptions

if TYPE_CHECKING:
    from featurestore import FeatureDataset

Arrays = Mapping[str, Any]
"""A batch as a stream gives it: NumPy arrays and lists by name."""


class Scores(Protocol):
    """The outcome of one evaluation."""

    @property
    def examples(self) -> int:
        """Examples scored."""
        ...

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
        """Take a model's output on one batch (`trainer.models.outputs.SyntaxOutput`).

        Args:
            output: What the model gave.
            batch: What it was given; ``batch.arrays`` has offsets, labels and the like.
        """
        ...

    def scores(self) -> Scores:
        """The scores of everything taken."""
        ...

    def predictions(self) -> list[Prediction]:
        """What was predicted of each example taken, in order; also of those without labels.

        A metric of the scores that is a ratio of sums over examples is among the shares, under
        the name that it has there.
        """
        ...


class Task(Protocol):
    """What a model is to predict.

    An implementation is built from its options and the label columns that they name.

    Args:
        options: Of the task's own class.
        labels: The label columns by name, in the order of ``options.columns()``.

    Raises:
        SpecError: A label column is not of the kind that the task needs.
    """

    metric: str
    """Name of the headline metric, a key of the scores."""

    stream_options: ClassVar[Mapping[str, Any]]
    """What batches must hold beside the usual, as options of `syntax.batches.AssemblySpec`."""

    extras: ClassVar[tuple[str, ...]]
    """Further arrays of the stream that the head reads (`SyntaxBatch.extras`)."""

    def __init__(self, options: TaskOptions, labels: Mapping[str, LabelSpec]) -> None: ...

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """What the head learns from, by name, one row per sequence of the batch."""
        ...

    def scorer(self, data: FeatureDataset) -> Scorer:
        """A new scorer of predictions on this dataset."""
        ...


TASKS: Registry[type[Task]] = Registry("task")
"""Every task by name. To add one, write its module, and register it in `trainer.tasks`."""
