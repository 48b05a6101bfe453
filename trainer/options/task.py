"""What every task is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from syntax.registry import Registry


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """What a model is to predict; a task's own options are in a dataclass that adds to this.

    Attributes:
        name: Name of the task, in `TASK_OPTIONS` and in `trainer.tasks.TASKS`.
    """

    name: str

    def columns(self) -> tuple[str, ...]:
        """The label columns that the task reads."""
        return ()

    def given(self) -> tuple[str, ...]:
        """Those of them that come with an example; the others are to be found."""
        return ()

    def found(self) -> tuple[str, ...]:
        """The columns that are to be found."""
        return tuple(name for name in self.columns() if name not in self.given())

    def has_labels(self, values: Mapping[str, Sequence[Any]]) -> bool:
        """Whether there is something to score predictions by, in the columns that are to be found.

        Args:
            values: Those columns of all examples, by name.
        """
        return any(any(column) for column in values.values())

    def spans(self) -> tuple[str, ...]:
        """Those of them whose spans matrices such as ``gate_distance`` go by."""
        return ()

    def tuned(self, scores: Mapping[str, Any]) -> TaskOptions:  # noqa: ARG002
        """The options to score other data with, after these scores on dev."""
        return self


TASK_OPTIONS: Registry[type[TaskOptions]] = Registry("task")
"""The options of each task; their ``name`` is the key."""
