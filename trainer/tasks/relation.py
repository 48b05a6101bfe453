"""``relation.v1``: the class of two given mentions, as in relation extraction.

Event-argument role labelling is the same task: the mentions are trigger and argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.errors import SpecError
from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics.relations import RelationScores, relation_scores
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.tasks.base import Arrays, Baseline, Head, Task
from trainer.tasks.classes import (
    NO_LABEL,
    ClassIds,
    ClassOutputs,
    check_classes,
    majority_baseline,
)
from trainer.tasks.mentions import mention_ids, token_tag_ids
from trainer.tasks.options import RelationOptions

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig


class Relation(Task):
    """The class of two mentions, one of which stands for none."""

    metric = "f1"
    stream_options: ClassVar[Mapping[str, Any]] = {"offsets": True, "token_ids": True}

    def __init__(self, options: RelationOptions, labels: Mapping[str, LabelSpec]) -> None:
        self._options, self._label = options, labels[options.label]
        check_classes(self._label, "relation extraction")
        for name in options.given():
            kind = "tags" if name == options.tags else "spans"
            if labels[name].kind != kind:
                raise SpecError(
                    f"the label {name!r} is of kind {labels[name].kind!r}; relation.v1 needs "
                    f"{kind!r}"
                )
        if options.null not in self._label.names:
            raise SpecError(
                f"the label {options.label!r} has no class {options.null!r}; set task.null to one "
                f"of {', '.join(self._label.names)}"
            )

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """Class ids, (B,), and the given mentions and tags of every position, (B, L)."""
        options = self._options
        found: dict[str, NDArray[np.generic]] = {options.label: arrays[options.label]}
        found.update({name: mention_ids(arrays, name) for name in options.spans()})
        if options.tags:
            found[options.tags] = token_tag_ids(arrays, options.tags)
        return found

    def scorer(self, data: FeatureDataset) -> RelationScorer:  # noqa: ARG002
        return RelationScorer(self._label, self._options)

    def baseline(self, train: FeatureDataset) -> Baseline:
        """The majority class; F1 is 0 where that stands for none."""

        def f1(gold: ClassIds, predicted: ClassIds) -> float:
            return relation_scores(gold, predicted, self._label.names, self._options.null).f1

        return majority_baseline(train, self._label, f1)


class RelationHead(Head):
    """Text, subject and object, each the maximum over its positions, through a linear map.

    Ahmad et al. 2021 (AAAI), "Relation Extractor" and "Event Argument Role Labeler". The release
    has two hidden layers before it, and no dropout (`task.classifier=as_released`).
    """

    options: RelationOptions

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        options = self.options
        if options.classifier == "as_released":
            first, second = nn.Linear(3 * width, width), nn.Linear(width, width)
            self.hidden = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        else:
            self.hidden = nn.Sequential(nn.Dropout(config.model_options().dropout))
            width = 3 * width
        self.output = nn.Linear(width, len(config.classes[options.label]))

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits by label column, *shape* (B, classes), and the mean cross-entropy."""
        states_BLD, label = encoding.last_hidden_state, self.options.label
        assert states_BLD is not None
        masks = [batch.attention_mask_BL & ~batch.special_tokens_mask_BL]
        masks += [batch.labels[name] > 0 for name in self.options.spans()]
        pooled_BD = torch.cat([max_over(states_BLD, mask_BL) for mask_BL in masks], -1)
        logits_BC = self.output(self.hidden(pooled_BD)).float()
        gold_B = batch.labels.get(label)
        loss = None if gold_B is None else F.cross_entropy(logits_BC, gold_B, ignore_index=NO_LABEL)
        return HeadOutput({label: logits_BC}, loss)


def max_over(states_BLD: Tensor, mask_BL: Tensor) -> Tensor:
    """The maximum of each feature over the masked positions, at least one. *Shape:* (B, D)."""
    least = torch.finfo(states_BLD.dtype).min
    return states_BLD.masked_fill(~mask_BL[..., None], least).amax(1)


class RelationScorer:
    """Collects predictions, batch by batch."""

    def __init__(self, label: LabelSpec, options: RelationOptions) -> None:
        self._label, self._options = label, options
        self._outputs = ClassOutputs(label)

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        self._outputs.take(output, batch.labels[self._label.name], batch.example_ids)

    def scores(self) -> RelationScores:
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
