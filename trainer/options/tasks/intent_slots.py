"""Options of joint intent classification and slot filling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from syntax.variant import Variant
from trainer.options.checks import check_range
from trainer.options.task import TASK_OPTIONS, TaskOptions


@dataclass(frozen=True, slots=True)
class IntentSlotsOptions(TaskOptions):
    """One class for an utterance, and one for each of its tokens.

    Attributes:
        intent: The label column of the utterance, of kind ``class``.
        slots: The label column of the tokens, of kind ``tags``.
        pieces, word_labels: As in `TokenClassificationOptions`.
        slot_weight: Weight of the slots' loss beside the intent's.
        metric: What models are selected on: the share of utterances of which all is right, the
            accuracy of intents, or the F1 of slots.
    """

    name: str = "intent_slots.v1"
    intent: str = "intent"
    slots: str = "slots"
    pieces: Literal["first", "words"] = "first"
    word_labels: Variant = "as_published"
    slot_weight: float = 1.0
    metric: Literal["exact_match", "intent_accuracy", "slot_f1"] = "exact_match"

    def __post_init__(self) -> None:
        check_range("task.slot_weight", self.slot_weight, 0)

    def columns(self) -> tuple[str, ...]:
        """Both columns."""
        return (self.intent, self.slots)


TASK_OPTIONS.add("intent_slots.v1", IntentSlotsOptions)
