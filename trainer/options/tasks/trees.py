"""Options of learning trees alone."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.options.task import TASK_OPTIONS, TaskOptions


@dataclass(frozen=True, slots=True)
class TreesOptions(TaskOptions):
    """Nothing but the auxiliary losses of the model: its states must spell the trees."""

    name: str = "trees.v1"


TASK_OPTIONS.add("trees.v1", TreesOptions)
