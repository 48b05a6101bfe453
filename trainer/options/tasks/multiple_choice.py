"""Options of multiple choice."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.options.tasks.base import TASK_OPTIONS, TaskOptions


@dataclass(frozen=True, slots=True)
class MultipleChoiceOptions(TaskOptions):
    """Which of several sequences of an example is right; ``data.template`` says what they are.

    Attributes:
        label: The label column, of kind ``class``: a class for each sequence of the template.
    """

    name: str = "multiple_choice.v1"
    label: str = "label"

    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.label,)


TASK_OPTIONS.add("multiple_choice.v1", MultipleChoiceOptions)
