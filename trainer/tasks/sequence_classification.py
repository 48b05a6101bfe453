"""``sequence_classification.v1``: one class for each example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from syntax.errors import SpecError
from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics.classification import (
    CLASS_METRICS,
    ClassificationScores,
    classification_scores,
)
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.tasks.base import Arrays, Baseline, Head, Task
from trainer.tasks.classes import (
    NO_LABEL,
    ClassIds,
    ClassifierOfFirst,
    ClassOutputs,
    check_classes,
    majority_baseline,
)
from trainer.tasks.options import SequenceClassificationOptions

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig
    from trainer.options import Recipe
    from trainer.requirements import DataProfile


class SequenceClassification(Task):
    """Single-label classification of whole examples."""

    def __init__(
        self, options: SequenceClassificationOptions, labels: Mapping[str, LabelSpec]
    ) -> None:
        self.metric = CLASS_METRICS.resolve(options.metric)
        self._label = labels[options.label]
        check_classes(self._label, "sequence classification")
        for name in options.given():
            if labels[name].kind != "string":
                raise SpecError(
                    f"the label {name!r} is of kind {labels[name].kind!r}; task.item needs 'string'"
                )

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """The class ids. *Shape:* (B,), int64; -1 without a label."""
        return {self._label.name: arrays[self._label.name]}

    def scorer(self, data: FeatureDataset) -> ClassificationScorer:  # noqa: ARG002
        return ClassificationScorer(self._label, self.metric)

    def baseline(self, train: FeatureDataset) -> Baseline:
        def score(gold: ClassIds, predicted: ClassIds) -> float:
            names = self._label.names
            return classification_scores(gold, predicted, 0.0, names, self.metric).headline

        return majority_baseline(train, self._label, score)


class SequenceClassificationHead(Head):
    """The classifier of one state, [CLS] or the last, and cross-entropy."""

    options: SequenceClassificationOptions

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        options = self.options
        self.label, self.state, self.config = options.label, options.state, config
        classes, dropout = len(config.classes[self.label]), config.model_options().dropout
        self.classifier = ClassifierOfFirst(width, classes, dropout, pooler=options.pooler)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits by label column, *shape* (B, classes), and the mean cross-entropy."""
        states_BLD = encoding.last_hidden_state
        assert states_BLD is not None
        if self.state == "last":
            rows_B = torch.arange(len(states_BLD), device=states_BLD.device)
            states_BLD = states_BLD[rows_B, batch.lengths_B.long() - 1][:, None]
        logits_BC = self.classifier(states_BLD)
        gold_B = batch.labels.get(self.label)
        loss = None if gold_B is None else F.cross_entropy(logits_BC, gold_B, ignore_index=NO_LABEL)
        return HeadOutput({self.label: logits_BC}, loss)

    def prepare(self, recipe: Recipe, profile: DataProfile) -> None:  # noqa: ARG002
        """Take the pretrained pooler of the recipe's encoder, where the options say so."""
        model = recipe.model
        if not self.classifier.pooler:
            return
        if model.reads_words:
            raise SpecError(
                f"{model.name} reads words, which no pooler does; set task.pooler=false"
            )
        if model.weights == "pretrained":
            from trainer.nn.stock import load_pooler  # imports the models of transformers

            pooler = load_pooler(model.encoder, self.config.encoder_config())
            self.classifier.load_pooler(pooler)


class ClassificationScorer:
    """Collects predictions, batch by batch."""

    def __init__(self, label: LabelSpec, metric: str = "accuracy") -> None:
        self._label, self._metric = label, metric
        self._outputs = ClassOutputs(label)

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        self.take(output, batch.labels[self._label.name], batch.example_ids)

    def take(self, output: Any, gold_B: Tensor, ids: Sequence[str]) -> None:
        self._outputs.take(output, gold_B, ids)

    def scores(self) -> ClassificationScores:
        found = self._outputs
        return classification_scores(
            found.gold(), found.predicted(), found.loss(), self._label.names, self._metric
        )

    def predictions(self) -> list[Prediction]:
        names = self._label.names
        return [
            Prediction(
                example_id,
                gold=names[gold] if gold >= 0 else None,
                predicted=names[predicted],
                right=predicted == gold if gold >= 0 else None,
                shares={"accuracy": (float(predicted == gold), 1.0)} if gold >= 0 else {},
                probability=probability,
            )
            for example_id, gold, predicted, probability in self._outputs.rows()
        ]
