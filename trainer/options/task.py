"""What every task is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from syntax.errors import SpecError
from trainer.metrics.answers import Rules


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """What a model is to predict; a task's own options are in a dataclass that adds to this.

    Attributes:
        name: Name of the task in `trainer.tasks.TASKS`.
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

    def rules_of(self, dataset: str) -> Rules | None:  # noqa: ARG002
        """How extracted answers are compared on a dataset; None for a task without answers."""
        return None

    def with_rules(self, rules: Rules) -> TaskOptions:
        """These options with answers compared by other rules.

        Raises:
            SpecError: The task extracts no answers.
        """
        raise SpecError(
            f"`rules={rules}` says how answers of extractive_qa.v1 are compared, and the run is of "
            f"{self.name}; leave it out"
        )

    def tuned(self, scores: Mapping[str, Any]) -> TaskOptions:  # noqa: ARG002
        """The options to score other data with, after these scores on dev."""
        return self
