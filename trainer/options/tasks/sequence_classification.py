"""Options of the classification of whole examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trainer.options.task import TASK_OPTIONS, TaskOptions


@dataclass(frozen=True, slots=True)
class SequenceClassificationOptions(TaskOptions):
    """One class for each example.

    Attributes:
        label: The label column, of kind ``class``.
        metric: What models are selected on: accuracy, mean F1 of the classes, or Matthews'
            correlation coefficient, as CoLA has it.
        pooler: Whether the state of [CLS] goes through the encoder's own pretrained pooler, as in
            BERT's classifier, instead of a new layer.
    """

    name: str = "sequence_classification.v1"
    label: str = "label"
    metric: Literal["accuracy", "macro_f1", "mcc"] = "accuracy"
    pooler: bool = False

    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.label,)


TASK_OPTIONS.add("sequence_classification.v1", SequenceClassificationOptions)
