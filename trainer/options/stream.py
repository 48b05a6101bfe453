"""Options of the streams that a run reads beside its main one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from syntax.options import check_range
from trainer.options.checks import check_entry_name, check_unique
from trainer.options.data import DataOptions
from trainer.options.objective import ObjectiveOptions
from trainer.options.task import TaskOptions

MAIN = "main"
"""Name of the stream that a recipe's own ``data``, ``task`` and ``objectives`` make."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """One more stream of a run: examples, and what the model learns from them.

    The examples come in epochs of their own, one after the other, as long as the run goes on.

    Attributes:
        name: Name of the stream in settings and results.
        data: What it reads; `dev_split` is evaluated when there is a task.
        task: What is predicted; without a task, the stream trains only its objectives.
        objectives: Auxiliary losses.
        share: Share of the optimizer steps; of a stream that joins, 0 only evaluates it.
        joins: Whether its batches share a step with the main stream's, so that gradients add;
            otherwise the stream has steps of its own. Of the streams that join ``in_turn``, one
            joins each step; their shares are those of their examples, which a result records.
    """

    name: str
    data: DataOptions
    task: TaskOptions | None = None
    objectives: tuple[ObjectiveOptions, ...] = ()
    share: float = 0.5
    joins: bool | Literal["in_turn"] = False

    def __post_init__(self) -> None:
        check_entry_name("streams", self.name, MAIN)
        if self.joins:
            check_range(f"streams.{self.name}.share", self.share, 0, 1)
        else:
            check_range(f"streams.{self.name}.share", self.share, 0, 1, above=True)
        check_unique(f"streams.{self.name}.objectives", [one.name for one in self.objectives])
