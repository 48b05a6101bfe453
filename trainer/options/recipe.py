"""A run, whole."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from syntax.errors import SpecError
from trainer.options.data import DataOptions
from trainer.options.entries import MAIN, OptimizerOptions, StreamOptions, check_unique
from trainer.options.model import ModelOptions
from trainer.options.objective import ObjectiveOptions
from trainer.options.task import TaskOptions
from trainer.options.training import TrainingOptions
from trainer.systems.syntax_mbert.options import SyntaxBertOptions

LISTS = ("objectives", "streams", "optimizers")
"""Parts of a recipe that are lists of named entries; most recipes have none."""


def _sequence_classification() -> TaskOptions:
    from trainer.tasks.options import SequenceClassificationOptions

    return SequenceClassificationOptions()


@dataclass(frozen=True, slots=True)
class Recipe:
    """One run: with the store it names, it can be repeated from this alone.

    Attributes:
        model, task: The class of these options belongs to the model and to the task.
        objectives: Losses beside the task's.
        streams: Further streams beside the main one, of ``data``, ``task`` and ``objectives``.
        optimizers: When empty, the one that ``training`` describes.
    """

    name: str
    data: DataOptions
    model: ModelOptions = field(default_factory=SyntaxBertOptions)
    task: TaskOptions = field(default_factory=_sequence_classification)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    objectives: tuple[ObjectiveOptions, ...] = ()
    streams: tuple[StreamOptions, ...] = ()
    optimizers: tuple[OptimizerOptions, ...] = ()

    def __post_init__(self) -> None:
        for name in LISTS:
            check_unique(name, [entry.name for entry in getattr(self, name)])
        taken = sum(stream.share for stream in self.streams if not stream.joins)
        if taken >= 1:
            raise SpecError(
                f"the streams take {taken:g} of the steps, and none is left to the main one; lower "
                "their shares"
            )

    def to_json(self) -> dict[str, Any]:
        content = asdict(self)
        return {key: value for key, value in content.items() if value or key not in LISTS}

    @property
    def stream_names(self) -> tuple[str, ...]:
        return (MAIN, *(stream.name for stream in self.streams))

    def of_stream(self, name: str) -> Recipe:
        """The run that would train the same model on one of the streams alone."""
        if name == MAIN:
            return replace(self, streams=(), optimizers=())
        from trainer.tasks.options import TreesOptions

        (stream,) = [stream for stream in self.streams if stream.name == name]
        return replace(
            self,
            data=stream.data,
            task=stream.task or TreesOptions(),
            objectives=stream.objectives,
            streams=(),
            optimizers=(),
        )
