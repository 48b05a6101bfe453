"""``multiple_choice.v1``: the right one of several sequences of an example, as of four answers.

Letters in shapes: ``B`` sequences, ``E`` examples, ``C`` choices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from syntax.errors import SpecError
from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics.classification import ClassificationScores, classification_scores
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.tasks.base import Arrays, Baseline, Head, Task
from trainer.tasks.classes import (
    NO_LABEL,
    ClassIds,
    ClassifierOfFirst,
    check_classes,
    majority_baseline,
)
from trainer.tasks.options import MultipleChoiceOptions
from trainer.tasks.sequence_classification import ClassificationScorer

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig


class MultipleChoice(Task):
    """Choice among the sequences of a template, one for each class of the label."""

    metric = "accuracy"
    extras: ClassVar[tuple[str, ...]] = ("example_index", "choice_index")

    def __init__(self, options: MultipleChoiceOptions, labels: Mapping[str, LabelSpec]) -> None:
        self._label = labels[options.label]
        check_classes(self._label, "multiple choice")
        self._group = labels[options.group] if options.group else None
        if self._group is not None:
            check_classes(self._group, "accuracy by group")

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """The right choice of each sequence's example. *Shape:* (B,), int64; -1 without one."""
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
        return ChoiceScorer(self._label, self._group)

    def baseline(self, train: FeatureDataset) -> Baseline:
        def accuracy(gold: ClassIds, predicted: ClassIds) -> float:
            return classification_scores(gold, predicted, 0.0, self._label.names).headline

        return majority_baseline(train, self._label, accuracy)


class MultipleChoiceHead(Head):
    """A score for each sequence, a softmax over those of an example (SG-Net, section 4.2)."""

    options: MultipleChoiceOptions

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        options = self.options
        self.label, self.choices = options.label, len(config.classes[options.label])
        self.score = ClassifierOfFirst(width, 1, config.model_options().dropout)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits by label column, *shape* (E, C), and the mean cross-entropy."""
        assert encoding.last_hidden_state is not None
        scores_B = self.score(encoding.last_hidden_state).squeeze(-1)
        logits_EC = by_example(scores_B, batch, self.choices)
        gold_B = batch.labels.get(self.label)
        if gold_B is None:
            return HeadOutput({self.label: logits_EC}, None)
        gold_E = gold_B[batch.extra("choice_index") == 0]
        return HeadOutput(
            {self.label: logits_EC}, F.cross_entropy(logits_EC, gold_E, ignore_index=NO_LABEL)
        )


def by_example(scores_B: Tensor, batch: SyntaxBatch, choices: int) -> Tensor:
    """The scores of each example's sequences in a row. *Shape:* (E, C)."""
    choice_B = batch.extra("choice_index").long()
    examples = int(scores_B.shape[0]) // choices
    logits_EC = scores_B.new_empty(examples, choices)
    return logits_EC.index_put((batch.extra("example_index").long(), choice_B), scores_B)


@dataclass(frozen=True, slots=True)
class GroupScores:
    """Labelled examples of a group, and the share of them predicted right."""

    examples: int
    accuracy: float


@dataclass(frozen=True, slots=True)
class ChoiceScores(ClassificationScores):
    """Scores of choices; ``per_group`` has the groups with labelled examples, by name."""

    per_group: dict[str, GroupScores] = field(default_factory=dict)


class ChoiceScorer:
    """Scores the choices of examples as a classification of them."""

    def __init__(self, label: LabelSpec, group: LabelSpec | None = None) -> None:
        self._name, self._scorer = label.name, ClassificationScorer(label)
        self._group, self._groups = group, list[int]()

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        first = batch.extra("choice_index") == 0
        ids = zip(batch.example_ids, first.tolist(), strict=True)
        named = [example_id for example_id, is_first in ids if is_first]
        self._scorer.take(output, batch.labels[self._name][first], named)
        if self._group is not None:
            self._groups += batch.arrays[self._group.name][first.cpu().numpy()].tolist()

    def scores(self) -> ChoiceScores:
        scores = self._scorer.scores()
        shared = {one.name: getattr(scores, one.name) for one in fields(scores)}
        return ChoiceScores(**shared, per_group=self._per_group())

    def _per_group(self) -> dict[str, GroupScores]:
        right: dict[int, list[bool]] = defaultdict(list)
        if self._group is None:
            return {}
        for group, one in zip(self._groups, self.predictions(), strict=True):
            if one.right is not None:
                right[group].append(one.right)
        found = [(name, right[at]) for at, name in enumerate(self._group.names) if right[at]]
        return {name: GroupScores(len(of), fmean(of)) for name, of in found}

    def predictions(self) -> list[Prediction]:
        return self._scorer.predictions()
