"""The class of two given mentions: relation extraction, event-argument role labelling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics.relations import RelationScores, relation_scores
from trainer.options import RelationOptions, TaskOptions
from trainer.tasks.base import Arrays
from trainer.tasks.classes import ClassOutputs, check_classes
from trainer.tasks.mentions import mention_ids, token_tag_ids

if TYPE_CHECKING:
    from featurestore import FeatureDataset


class Relation:
    """The class of two mentions, one of which stands for none.

    Args:
        options: The label columns, and the class for none.
        labels: Those columns.

    Raises:
        SpecError: A column is of another kind; or there is no class for none.
    """

    stream_options: ClassVar[Mapping[str, Any]] = {"offsets": True, "token_ids": True}
    extras: ClassVar[tuple[str, ...]] = ()

    def __init__(self, options: TaskOptions, labels: Mapping[str, LabelSpec]) -> None:
        assert isinstance(options, RelationOptions)
        self.metric = "f1"
        self._options, self._label = options, labels[options.label]
        check_classes(self._label, "relation extraction")
        for name in options.spans():
            _check_kind(labels[name], "spans")
        if options.tags:
            _check_kind(labels[options.tags], "tags")
        if options.null not in self._label.names:
            raise SpecError(
                f"the label {options.label!r} has no class {options.null!r}; set task.null to one "
                f"of {', '.join(self._label.names)}"
            )

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """Class ids, *shape* (B,); and of every position the mentions and tags, (B, L).

        These are given, not to be found: heads pool over the mentions, and encoders may read all.

        Raises:
            SpecError: A mention was cut off.
        """
        options = self._options
        found: dict[str, NDArray[np.generic]] = {options.label: arrays[options.label]}
        found.update({name: mention_ids(arrays, name) for name in options.spans()})
        if options.tags:
            found[options.tags] = token_tag_ids(arrays, options.tags)
        return found

    def scorer(self, data: FeatureDataset) -> RelationScorer:  # noqa: ARG002
        """A new scorer."""
        return RelationScorer(self._label, self._options)


class RelationScorer:
    """Collects predictions, batch by batch.

    Args:
        label: The label column.
        options: Which class stands for none, and what precision is without any other.
    """

    def __init__(self, label: LabelSpec, options: RelationOptions) -> None:
        self._label, self._options = label, options
        self._outputs = ClassOutputs(label)

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        """Take a model's output on one batch."""
        self._outputs.take(output, batch.labels[self._label.name], batch.example_ids)

    def scores(self) -> RelationScores:
        """The scores of everything taken."""
        released = self._options.empty_precision == "as_released"
        return relation_scores(
            self._outputs.gold(),
            self._outputs.predicted(),
            self._label.names,
            self._options.null,
            self._outputs.loss(),
            empty_precision=float(released),
        )

    def predictions(self) -> list[Prediction]:
        """The class of each pair; see `Scorer`."""
        return [self._prediction(*row) for row in self._outputs.rows()]

    def _prediction(
        self, example_id: str, gold: int, predicted: int, probability: float
    ) -> Prediction:
        names = self._label.names
        if gold < 0:
            return Prediction(example_id, None, names[predicted], probability=probability)
        null, right = names.index(self._options.null), gold == predicted
        hits, found = right and gold != null, (gold != null) + (predicted != null)
        shares = {"f1": (2.0 * hits, float(found)), "accuracy": (float(right), 1.0)}
        return Prediction(example_id, names[gold], names[predicted], right, shares, probability)


def _check_kind(label: LabelSpec, kind: str) -> None:
    if label.kind != kind:
        raise SpecError(
            f"the label {label.name!r} is of kind {label.kind!r}; relation.v1 needs {kind!r}"
        )
