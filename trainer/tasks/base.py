"""What a task is: the label it reads, and how predictions are scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from syntax.examples import LabelSpec
from syntax.registry import Registry
from trainer.batch import SyntaxBatch


class Scores(Protocol):
    """The outcome of one evaluation."""

    @property
    def examples(self) -> int:
        """Examples scored."""
        ...

    @property
    def headline(self) -> float:
        """The one number that models are selected on; higher is better."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Every number by name, as plain JSON."""
        ...


class Scorer(Protocol):
    """Collects predictions, batch by batch."""

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        """Take a model's output on one batch."""
        ...

    def scores(self) -> Scores:
        """The scores of everything taken."""
        ...


class Task(Protocol):
    """What a model is to predict.

    An implementation names its headline metric and transformers' auto class for its models, checks
    the label column that it reads, and makes scorers.
    """

    metric: str
    auto_class: str

    def check(self, label: LabelSpec) -> None:
        """Refuse a label column that is not of this task's kind.

        Raises:
            SpecError: It is not.
        """
        ...

    def scorer(self, label: str, names: Sequence[str]) -> Scorer:
        """A new scorer for the label column ``label`` with classes ``names``."""
        ...


TASKS: Registry[Callable[[], Task]] = Registry("task")
"""Every task by name. To add one, write its module, and register it in `trainer.tasks`."""
