"""Options of multiple choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.options.task import TASK_OPTIONS, TaskOptions


@dataclass(frozen=True, slots=True)
class MultipleChoiceOptions(TaskOptions):
    """Which of several sequences of an example is right; ``data.template`` says what they are.

    Attributes:
        label: The label column, of kind ``class``: a class for each sequence of the template.
        group: A label column, of kind ``class``, of each of which accuracy is also given.
    """

    name: str = "multiple_choice.v1"
    label: str = "label"
    group: str | None = None

    def columns(self) -> tuple[str, ...]:
        """The label, and the group if there is one."""
        return (self.label, *([self.group] if self.group else []))

    def found(self) -> tuple[str, ...]:
        """The label; a group is no answer."""
        return (self.label,)

    def has_labels(self, values: Mapping[str, Sequence[Any]]) -> bool:
        """Whether there is an answer; a group alone is none."""
        return any(values[self.label])


TASK_OPTIONS.add("multiple_choice.v1", MultipleChoiceOptions)
