"""The class of two given mentions: relation extraction, event-argument role labelling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from syntax.errors import SpecError
from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.metrics.relations import RelationScores, relation_scores
from trainer.options import RelationOptions, TaskOptions
from trainer.predictions import Prediction
from trainer.tasks.base import Arrays
from trainer.tasks.losses import MeanLoss
from trainer.tasks.mentions import mention_ids, token_tag_ids
from trainer.tasks.sequence_classification import check_classes

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
    """Collects predictions on the device they were made on; reads them once, at the end.

    Args:
        label: The label column.
        options: Which class stands for none, and what precision is without any other.
    """

    def __init__(self, label: LabelSpec, options: RelationOptions) -> None:
        self._label, self._options = label, options
        self._gold: list[Tensor] = []
        self._predicted: list[Tensor] = []
        self._probabilities: list[Tensor] = []
        self._ids: list[str] = []
        self._loss = MeanLoss()

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        """Take a model's output on one batch."""
        gold_B = batch.labels[self._label.name]
        best = output.logits[self._label.name].softmax(-1).max(-1)
        self._gold.append(gold_B)
        self._predicted.append(best.indices)
        self._probabilities.append(best.values)
        self._ids += batch.example_ids
        self._loss.add(output.task_loss, (gold_B >= 0).sum())

    def scores(self) -> RelationScores:
        """The scores of everything taken."""
        released = self._options.empty_precision == "as_released"
        return relation_scores(
            _together(self._gold),
            _together(self._predicted),
            self._label.names,
            self._options.null,
            self._loss.mean(),
            empty_precision=float(released),
        )

    def predictions(self) -> list[Prediction]:
        """The class of each pair; see `Scorer`."""
        columns = (self._gold, self._predicted, self._probabilities)
        rows = zip(self._ids, *(_together(column).tolist() for column in columns), strict=True)
        return [self._prediction(*row) for row in rows]

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


def _together(tensors: list[Tensor]) -> NDArray[Any]:
    arrays = [tensor.cpu().numpy() for tensor in tensors]
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)
