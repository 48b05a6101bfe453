"""Joint intent classification and slot filling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.metrics.entities import SpanScores
from trainer.options import IntentSlotsOptions, TaskOptions
from trainer.tasks.base import Arrays
from trainer.tasks.losses import MeanLoss
from trainer.tasks.sequence_classification import check_classes
from trainer.tasks.token_classification import Pairs, tagging_scores
from trainer.tasks.tokens import STREAM_OPTIONS, TokenTags

if TYPE_CHECKING:
    from featurestore import FeatureDataset


@dataclass(frozen=True, slots=True)
class IntentSlotsScores:
    """Scores of intents and slots.

    Attributes:
        examples: Utterances scored: those that have both.
        exact_match: Share of them with the right intent and every tag right.
        intent_accuracy: Share with the right intent.
        slot_precision, slot_recall, slot_f1: Of slots, over all types.
        loss: Mean of the joint loss.
        per_slot: Scores by type of slot.
        metric: Name of the headline.
    """

    examples: int
    exact_match: float
    intent_accuracy: float
    slot_precision: float
    slot_recall: float
    slot_f1: float
    loss: float
    per_slot: dict[str, SpanScores]
    metric: str = "exact_match"

    @property
    def headline(self) -> float:
        """The metric that models are selected on."""
        value: float = getattr(self, self.metric)
        return value

    def to_json(self) -> dict[str, Any]:
        """Every number by name."""
        return asdict(self)


def intent_slots_scores(
    intents: NDArray[np.bool_], slots: Pairs, loss: float, metric: str = "exact_match"
) -> IntentSlotsScores:
    """Score utterances.

    Args:
        intents: Which have the right intent. *Shape:* (examples,).
        slots: Gold and predicted tags of the same utterances.
        loss: Mean loss.
        metric: Name of the headline.

    >>> pairs = [(["B-city"], ["B-city"]), (["O", "O"], ["O", "B-city"])]
    >>> scores = intent_slots_scores(np.array([True, True]), pairs, 0.0)
    >>> scores.exact_match, scores.intent_accuracy
    (0.5, 1.0)
    """
    tagging = tagging_scores(slots, loss)
    right = np.array([list(ours) == list(theirs) for ours, theirs in slots], bool)
    return IntentSlotsScores(
        examples=len(slots),
        exact_match=float((right & intents).mean()) if slots else 0.0,
        intent_accuracy=float(intents.mean()) if slots else 0.0,
        slot_precision=tagging.precision,
        slot_recall=tagging.recall,
        slot_f1=tagging.f1,
        loss=loss,
        per_slot=tagging.per_type,
        metric=metric,
    )


class IntentSlotsScorer:
    """Collects intents and tags, batch by batch."""

    def __init__(self, intent: LabelSpec, slots: TokenTags, metric: str) -> None:
        self._intent, self._slots, self._metric = intent.name, slots, metric
        self._right: list[bool] = []
        self._pairs: list[tuple[list[str], list[str]]] = []
        self._loss = MeanLoss()

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        """Take a model's output on one batch."""
        slots = self._slots.label.name
        intents = batch.labels[self._intent].tolist()
        predicted = output.logits[self._intent].argmax(-1).tolist()
        pairs = self._slots.pairs(batch.arrays, output.logits[slots].argmax(-1).cpu().numpy())
        # An utterance without one of the two labels can be neither right nor wrong.
        scored = [at for at, (tags, _) in enumerate(pairs) if tags and intents[at] >= 0]
        self._right += [predicted[at] == intents[at] for at in scored]
        self._pairs += [pairs[at] for at in scored]
        self._loss.add(output.task_loss, batch.labels[self._intent].new_tensor(len(scored)))

    def scores(self) -> IntentSlotsScores:
        """The scores of everything taken."""
        right = np.array(self._right, bool)
        return intent_slots_scores(right, self._pairs, self._loss.mean(), self._metric)


class IntentSlots:
    """One class for an utterance, and one for each of its tokens.

    Args:
        options: The two label columns, and the headline metric.
        labels: Those columns.

    Raises:
        SpecError: A label is of another kind.
    """

    stream_options: ClassVar[Mapping[str, Any]] = STREAM_OPTIONS
    extras: ClassVar[tuple[str, ...]] = ()

    def __init__(self, options: TaskOptions, labels: Mapping[str, LabelSpec]) -> None:
        assert isinstance(options, IntentSlotsOptions)
        self.metric: str = options.metric
        self._intent = labels[options.intent]
        check_classes(self._intent, "intent classification")
        self._slots = TokenTags(labels[options.slots], options.pieces, options.word_labels)

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """Intent ids, *shape* (B,), and labels of pieces, (B, L)."""
        return {
            self._intent.name: arrays[self._intent.name],
            self._slots.label.name: self._slots.targets(arrays),
        }

    def scorer(self, data: FeatureDataset) -> IntentSlotsScorer:  # noqa: ARG002
        """A new scorer."""
        return IntentSlotsScorer(self._intent, self._slots, self.metric)
