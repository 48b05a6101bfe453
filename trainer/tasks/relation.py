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
        self._loss = MeanLoss()

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        """Take a model's output on one batch."""
        gold_B = batch.labels[self._label.name]
        self._gold.append(gold_B)
        self._predicted.append(output.logits[self._label.name].argmax(-1))
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


def _check_kind(label: LabelSpec, kind: str) -> None:
    if label.kind != kind:
        raise SpecError(
            f"the label {label.name!r} is of kind {label.kind!r}; relation.v1 needs {kind!r}"
        )


def _together(tensors: list[Tensor]) -> NDArray[np.int64]:
    arrays = [tensor.cpu().numpy() for tensor in tensors]
    return np.concatenate([np.zeros(0, np.int64), *arrays])
