"""A run, whole."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from trainer.options.data import DataOptions
from trainer.options.models import ModelOptions, SyntaxBertOptions
from trainer.options.task import TaskOptions
from trainer.options.training import TrainingOptions


def _sequence_classification() -> TaskOptions:
    from trainer.tasks import SequenceClassificationOptions  # imports torch

    return SequenceClassificationOptions()


@dataclass(frozen=True, slots=True)
class Recipe:
    """One run: with the store it names, it can be repeated from this alone.

    Attributes:
        name: Name of the run.
        data: What it reads.
        model: What it trains; the class of these options belongs to the model.
        task: What is predicted; likewise.
        training: How it trains.
    """

    name: str
    data: DataOptions
    model: ModelOptions = field(default_factory=SyntaxBertOptions)
    task: TaskOptions = field(default_factory=_sequence_classification)
    training: TrainingOptions = field(default_factory=TrainingOptions)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON content; `trainer.options.settings.recipe_from_json` reads it back."""
        return asdict(self)
