"""Entries of a recipe's lists, each with a name: further streams, and optimizers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from syntax.errors import SpecError
from syntax.options import Count, Positive, check_fields, check_range
from trainer.options.data import DataOptions
from trainer.options.objective import ObjectiveOptions
from trainer.options.task import TaskOptions
from trainer.options.training import TrainingOptions

MAIN = "main"
"""Name of the stream that a recipe's own ``data``, ``task`` and ``objectives`` make."""


def check_entry_name(kind: str, name: str, *taken: str) -> None:
    if not name.isidentifier() or name in taken:
        reserved = f", and not {', '.join(taken)}" if taken else ""
        raise SpecError(
            f"one of {kind} has the name {name!r}; give letters, digits and '_'{reserved}"
        )


def check_unique(name: str, values: Sequence[str]) -> None:
    if twice := sorted({value for value in values if values.count(value) > 1}):
        raise SpecError(f"{name} has {', '.join(twice)} twice; give each entry its own name")


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


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """Parameters of an optimizer with a learning rate or a decay of their own.

    Attributes:
        name: Name of the group in settings.
        parameters: As in `OptimizerOptions`.
        learning_rate: Learning rate of these parameters; by default the optimizer's. At 0 they are
            frozen: they have no gradients, and modules that hold only such parameters no dropout.
        weight_decay: Weight decay of all these parameters, biases and LayerNorm included; by
            default as for the optimizer's other parameters.
    """

    name: str
    parameters: tuple[str, ...]
    learning_rate: float | None = None
    weight_decay: float | None = None

    def __post_init__(self) -> None:
        check_entry_name("groups", self.name)

    def trained(self, training: TrainingOptions) -> TrainingOptions:
        return _given(self, training)


@dataclass(frozen=True, slots=True)
class OptimizerOptions:
    """One optimizer of a run; what is left out is as `TrainingOptions` say.

    Attributes:
        name: Name of the optimizer in settings.
        parameters: What it trains: names of modules or parameters of the model (``head``,
            ``encoder.gat``), or regular expressions that match the whole name of a parameter. By
            default all parameters that no other optimizer names.
        objectives: Objectives whose losses train its parameters and no others. By default the loss
            without the objectives that other optimizers name.
        every: Its parameters change in the first of each ``every`` steps; gradients of the other
            steps are dropped.
        groups: Parameters with their own learning rate or decay; with the rate 0 they are frozen.
        clamp: Largest absolute value of its parameters, to which they are cut after a step, as the
            critic's in WGAN; left out, they are not cut.
        clamp_every: They are cut in the first of each so many steps.
        optimizer, learning_rate, epsilon, betas, weight_decay: As in `TrainingOptions`.
        schedule, decay, decay_after, warmup_steps, warmup_share, clip_norm, clip_value: As in
            `TrainingOptions`.
    """

    name: str
    parameters: tuple[str, ...] = ()
    objectives: tuple[str, ...] = ()
    every: Count = 1
    groups: tuple[GroupOptions, ...] = ()
    clamp: Positive | None = None
    clamp_every: Count = 1
    optimizer: Literal["adamw", "sgd", "rmsprop"] | None = None
    learning_rate: float | None = None
    epsilon: float | None = None
    betas: tuple[float, ...] | None = None
    weight_decay: float | None = None
    schedule: Literal["linear", "plateau", "cosine", "constant"] | None = None
    decay: float | None = None
    decay_after: int | None = None
    warmup_steps: int | None = None
    warmup_share: float | None = None
    clip_norm: float | None = None
    clip_value: float | None = None

    def __post_init__(self) -> None:
        check_entry_name("optimizers", self.name)
        check_fields(f"optimizers.{self.name}", self)
        check_unique(f"optimizers.{self.name}.groups", [one.name for one in self.groups])

    def trained(self, training: TrainingOptions) -> TrainingOptions:
        return _given(self, training)


def _given(options: Any, training: TrainingOptions) -> TrainingOptions:
    known = {field.name for field in fields(TrainingOptions)}
    given = {one.name: getattr(options, one.name) for one in fields(options) if one.name in known}
    return replace(training, **{name: value for name, value in given.items() if value is not None})
