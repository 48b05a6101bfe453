"""``intent_slots.v1``: joint intent classification and slot filling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional as F

from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics import NamedScores
from trainer.metrics.entities import SpanScores
from trainer.metrics.tagging import Pairs, tagging_scores, tagging_shares
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.tasks.base import Arrays, Baseline, Head, MeanLoss, Task
from trainer.tasks.classes import (
    NO_LABEL,
    ClassifierOfFirst,
    check_classes,
    class_ids,
    majority_class,
)
from trainer.tasks.options import IntentSlotsOptions
from trainer.tasks.tokens import (
    STREAM_OPTIONS,
    TagLexicon,
    TokenTags,
    example_ids,
    piece_loss,
    tagged_tokens,
)

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig


class IntentSlots(Task):
    """One class for an utterance, and one for each of its tokens."""

    stream_options: ClassVar[Mapping[str, Any]] = STREAM_OPTIONS

    def __init__(self, options: IntentSlotsOptions, labels: Mapping[str, LabelSpec]) -> None:
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
        return IntentSlotsScorer(self._intent, self._slots, self.metric)

    def baseline(self, train: FeatureDataset) -> Baseline:
        majority = majority_class(train, self._intent)
        lexicon = TagLexicon.of(train, self._slots.label)

        def score(data: FeatureDataset) -> float:
            intents, slots = class_ids(data, self._intent), list(tagged_tokens(data, lexicon.label))
            scored = (intents >= 0) & np.array([bool(tags) for _, tags in slots], bool)
            pairs = [(tags, lexicon.tag(forms)) for forms, tags in compress(slots, scored)]
            right = intents[scored] == majority
            return intent_slots_scores(right, pairs, 0.0, self.metric).headline

        return Baseline("majority intent, most frequent tag per form", score)


class IntentSlotsHead(Head):
    """A classifier of [CLS] and a linear map at every position (Ahmad et al. 2021, section 4)."""

    options: IntentSlotsOptions

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        options = self.options
        dropout = config.model_options().dropout
        self.intent = ClassifierOfFirst(width, len(config.classes[options.intent]), dropout)
        self.dropout = nn.Dropout(dropout)
        self.slots = nn.Linear(width, len(config.classes[options.slots]))

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits by label column, *shapes* (B, intents) and (B, L, slots), and the joint loss."""
        assert encoding.last_hidden_state is not None
        intent, slots = self.options.intent, self.options.slots
        intent_BC = self.intent(encoding.last_hidden_state)
        slots_BLC = self.slots(self.dropout(encoding.last_hidden_state)).float()
        logits = {intent: intent_BC, slots: slots_BLC}
        slot_loss = piece_loss(slots_BLC, batch, slots)
        if intent not in batch.labels or slot_loss is None:
            return HeadOutput(logits, None)
        intent_loss = F.cross_entropy(intent_BC, batch.labels[intent], ignore_index=NO_LABEL)
        return HeadOutput(logits, intent_loss + self.options.slot_weight * slot_loss)


@dataclass(frozen=True, slots=True)
class IntentSlotsScores(NamedScores):
    """Scores of utterances with both labels; ``exact_match``: intent and all tags are right."""

    examples: int
    exact_match: float
    intent_accuracy: float
    slot_precision: float
    slot_recall: float
    slot_f1: float
    loss: float
    per_slot: dict[str, SpanScores]
    metric: str = "exact_match"


def intent_slots_scores(
    intents: NDArray[np.bool_], slots: Pairs, loss: float, metric: str = "exact_match"
) -> IntentSlotsScores:
    """Score utterances: intents that are right or not, and the tags of the same utterances.

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
        self._intent, self._slots, self._metric = intent, slots, metric
        self._ids: list[str] = []
        self._intents: list[tuple[int, int]] = []
        self._pairs: list[tuple[list[str], list[str]]] = []
        self._scored: list[bool] = []
        self._loss = MeanLoss()

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        intent, slots = self._intent.name, self._slots.label.name
        gold, predicted = batch.labels[intent], output.logits[intent].argmax(-1)
        pairs = self._slots.pairs(batch.arrays, output.logits[slots].argmax(-1).cpu().numpy())
        # An utterance without one of the two labels can be neither right nor wrong.
        scored = [
            bool(tags) and at >= 0 for (tags, _), at in zip(pairs, gold.tolist(), strict=True)
        ]
        self._ids += example_ids(batch.arrays)
        self._intents += zip(gold.tolist(), predicted.tolist(), strict=True)
        self._pairs += pairs
        self._scored += scored
        self._loss.add(output.task_loss, gold.new_tensor(sum(scored)))

    def scores(self) -> IntentSlotsScores:
        right = [gold == predicted for gold, predicted in compress(self._intents, self._scored)]
        pairs = list(compress(self._pairs, self._scored))
        return intent_slots_scores(np.array(right, bool), pairs, self._loss.mean(), self._metric)

    def predictions(self) -> list[Prediction]:
        found = zip(self._ids, self._intents, self._pairs, self._scored, strict=True)
        return [self._prediction(*utterance) for utterance in found]

    def _prediction(
        self,
        example_id: str,
        intents: tuple[int, int],
        slots: tuple[list[str], list[str]],
        scored: bool,
    ) -> Prediction:
        names = [self._intent.names[at] if at >= 0 else None for at in intents]
        gold, predicted = (
            {"intent": intent, "slots": tags} for intent, tags in zip(names, slots, strict=True)
        )
        if not scored:
            return Prediction(example_id, None, predicted)
        shares = utterance_shares(intents[0] == intents[1], *slots)
        return Prediction(example_id, gold, predicted, gold == predicted, shares)


def utterance_shares(
    intent: bool, gold: Sequence[str], predicted: Sequence[str]
) -> dict[str, tuple[float, float]]:
    slots = tagging_shares(gold, predicted)
    whole = intent and list(gold) == list(predicted)
    return {
        "exact_match": (float(whole), 1.0),
        "intent_accuracy": (float(intent), 1.0),
        **{f"slot_{name}": slots[name] for name in ("precision", "recall", "f1")},
    }
