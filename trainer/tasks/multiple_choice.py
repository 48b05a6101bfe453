"""Which of several sequences of an example is right, such as an answer among four."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.options import MultipleChoiceOptions, TaskOptions
from trainer.predictions import Prediction
from trainer.tasks.base import Arrays
from trainer.tasks.sequence_classification import (
    ClassificationScorer,
    ClassificationScores,
    check_classes,
)

if TYPE_CHECKING:
    from featurestore import FeatureDataset


class MultipleChoice:
    """Choice among the sequences of a template, one for each class of the label.

    Args:
        options: The label column.
        labels: That column.

    Raises:
        SpecError: The label is a number or free text, or has fewer than two classes.
    """

    stream_options: ClassVar[Mapping[str, Any]] = {}
    extras: ClassVar[tuple[str, ...]] = ("example_index", "choice_index")

    def __init__(self, options: TaskOptions, labels: Mapping[str, LabelSpec]) -> None:
        assert isinstance(options, MultipleChoiceOptions)
        self.metric = "accuracy"
        self._label = labels[options.label]
        check_classes(self._label, "multiple choice")

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """The right choice of each sequence's example. *Shape:* (B,), int64; -1 without one.

        Raises:
            SpecError: The template gives another number of sequences than there are classes.
        """
        choices = len(self._label.names)
        found = int(arrays["choice_index"].max()) + 1 if "choice_index" in arrays else 1
        if found != choices:
            raise SpecError(
                f"the label {self._label.name!r} chooses among {choices}, and an example became "
                f"{found} sequences; set data.template, such as "
                '["article+question option_*"], to one for each class'
            )
        return {self._label.name: arrays[self._label.name]}

    def scorer(self, data: FeatureDataset) -> ChoiceScorer:  # noqa: ARG002
        """A new scorer."""
        return ChoiceScorer(self._label)


class ChoiceScorer:
    """Scores the choices of examples as a classification of them.

    Args:
        label: The label column.
    """

    def __init__(self, label: LabelSpec) -> None:
        self._name, self._scorer = label.name, ClassificationScorer(label)

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        """Take a model's output on one batch."""
        first = batch.extra("choice_index") == 0
        ids = zip(batch.example_ids, first.tolist(), strict=True)
        named = [example_id for example_id, is_first in ids if is_first]
        self._scorer.take(output, batch.labels[self._name][first], named)

    def scores(self) -> ClassificationScores:
        """The scores of everything taken."""
        return self._scorer.scores()

    def predictions(self) -> list[Prediction]:
        """The choice of each example; see `Scorer`."""
        return self._scorer.predictions()
