"""Optimizers, what each of them trains, and the learning rate of each step."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from syntax.errors import SpecError, WorkError
from syntax.registry import unknown_name
from trainer.options import ObjectiveOptions, OptimizerOptions, Recipe, TrainingOptions
from trainer.progress import Evaluation
from trainer.restarts import restarts


class DivergedError(WorkError):
    """The weights of a model contain NaN or infinity; training cannot repair them."""


@dataclass(slots=True)
class ModelOptimizer:
    """An optimizer, and what it trains.

    Attributes:
        training: Options of the run, with this optimizer's in their place.
        optimizer: Of torch; later, as accelerate wraps it.
        parameters: All that it trains, in the order of the model; not those that are frozen.
    """

    options: OptimizerOptions
    training: TrainingOptions
    optimizer: Any
    parameters: list[nn.Parameter]
    rates: list[TrainingOptions]

    def due(self, step: int, delayed: bool = False) -> bool:
        """True if it takes a step (0-based); before the delay is over it takes every step."""
        return delayed or step % self.options.every == 0

    def clip(self, accelerator: Any) -> None:
        # accelerate's two functions for what follows would both divide by the loss scale of fp16.
        accelerator.unscale_gradients(self.optimizer)
        if self.training.clip_value > 0:
            nn.utils.clip_grad_value_(self.parameters, self.training.clip_value)
        if self.training.clip_norm > 0:
            nn.utils.clip_grad_norm_(self.parameters, self.training.clip_norm)

    @torch.no_grad()
    def clamp(self, step: int) -> None:
        bound = self.options.clamp
        if bound is not None and step % self.options.clamp_every == 0:
            for parameter in self.parameters:
                parameter.clamp_(-bound, bound)

    def learns(self, objective: str) -> bool:
        """True if it names this objective, with or without its version."""
        return bool({objective, objective.rpartition(".")[0]} & set(self.options.objectives))

    def set_rates(
        self,
        step: int,
        total_steps: int,
        evaluations: Sequence[Evaluation],
        warmup_epoch_steps: int = 0,
    ) -> None:
        for group, options in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = learning_rate(step, total_steps, options, evaluations, warmup_epoch_steps)

    @property
    def rate(self) -> float:
        """The learning rate of the last step, of the parameters that no group has."""
        return float(self.optimizer.param_groups[0]["lr"])


def new_optimizers(model: nn.Module, recipe: Recipe) -> list[ModelOptimizer]:
    """The optimizers of a run; biases and LayerNorm do not decay, as BERT's; rate 0 freezes."""
    listed = recipe.optimizers or (OptimizerOptions("main"),)
    if len(listed) > 1 and recipe.training.precision == "fp16":
        raise SpecError(
            "training.precision=fp16 scales losses for one optimizer, and the recipe has "
            f"{len(listed)}; use bf16"
        )
    _check_objectives(listed, recipe)
    named = dict(model.named_parameters())
    chosen = _assigned("optimizers", {one.name: one.parameters for one in listed}, named)
    return [
        _new_optimizer(model, options, options.trained(recipe.training), chosen[options.name])
        for options in listed
    ]


def _check_objectives(optimizers: Sequence[OptimizerOptions], recipe: Recipe) -> None:
    streams = map(recipe.of_stream, recipe.stream_names)
    known = {one.name for stream in streams for one in stream.objectives}
    known |= {name.rpartition(".")[0] for name in known}
    for options in optimizers:
        for name in set(options.objectives) - known:
            raise unknown_name(f"objective of optimizers.{options.name}", name, known)


def check_trained(model: Any, optimizers: Sequence[ModelOptimizer]) -> None:
    """Refuse optimizers of a `SyntaxModel` whose losses do not reach what they train."""
    taken = {
        one.options.name
        for one in model.objectives
        for part in optimizers
        if part.learns(one.options.name)
    }
    read: dict[nn.Parameter, set[str]] = {}
    for one in model.objectives:
        for weight in one.parameters():
            read.setdefault(weight, set()).add(one.options.name)
    of_heads = {*model.head.parameters(), *model.heads.parameters()}
    for part in optimizers:
        called, named = f"optimizers.{part.options.name}", part.options.objectives
        if not part.parameters:
            raise SpecError(f"{called} trains no weights: those of its parameters stay as they are")
        if named and not any(map(part.learns, taken)):
            raise SpecError(
                f"{called} learns by {', '.join(named)}, and the model has no such objective; give "
                "it a weight"
            )
        for weight in part.parameters:
            names = read.get(weight, set())
            if named and weight in of_heads:
                raise SpecError(
                    f"{called} trains weights of a head, and learns only by {', '.join(named)}; "
                    "let an optimizer without `objectives` train them"
                )
            if names and not any(part.learns(x) if named else x not in taken for x in names):
                raise SpecError(
                    f"{called} trains the weights of {', '.join(sorted(names))}, whose loss trains "
                    "another optimizer or none; name it among the `objectives` of this one, or let "
                    "another train its weights"
                )


def check_weights(model: nn.Module, step: int) -> None:
    """Refuse broken weights; a loss may be NaN without them, where a batch has no labels."""
    if not all(bool(weight.isfinite().all()) for weight in model.parameters()):
        raise DivergedError(
            f"at step {step} the weights contain NaN or infinity; train again with a lower "
            "training.learning_rate or a longer warm-up"
        )


def separate_losses(
    optimizers: Sequence[ModelOptimizer], output: Any, objectives: Sequence[ObjectiveOptions]
) -> Iterator[tuple[ModelOptimizer, Tensor]]:
    """The loss that each optimizer minimises, where some name objectives of their own."""
    found = output.objectives or {}
    weighted = {one.name: one.weight * found[one.name] for one in objectives if one.name in found}
    taken: set[str] = set()
    for part in optimizers:
        own = [name for name in weighted if part.learns(name)]
        taken.update(own)
        if own:
            yield part, torch.stack([weighted[name] for name in own]).sum()
    rest = [weighted[name] for name in weighted if name not in taken]
    if output.task_loss is not None:
        rest.append(output.task_loss)
    for part in optimizers:
        if rest and not part.options.objectives:
            yield part, torch.stack(rest).sum()


def learned_by(optimizers: Sequence[ModelOptimizer]) -> list[nn.Parameter]:
    return [one for part in optimizers for one in part.parameters]


def exchange_gradients(optimizers: Sequence[ModelOptimizer], accelerator: Accelerator) -> None:
    """Average gradients over processes, where no backward pass has; one without any counts as 0."""
    if accelerator.num_processes == 1:
        return
    parameters = learned_by(optimizers)
    has_gradient = [x.grad is not None for x in parameters]
    found = accelerator.reduce(torch.tensor(has_gradient, device=accelerator.device).int(), "sum")
    for parameter, processes in zip(parameters, found.tolist(), strict=True):
        if processes:
            own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parameter.grad = accelerator.reduce(own, "mean")


def _new_optimizer(
    model: nn.Module,
    options: OptimizerOptions,
    training: TrainingOptions,
    parameters: Mapping[str, nn.Parameter],
) -> ModelOptimizer:
    steady, rates = set(_steady(model)), [training, training]
    patterns = {"": (), **{group.name: group.parameters for group in options.groups}}
    chosen = _assigned(f"optimizers.{options.name}.groups", patterns, parameters)
    rest = list(chosen[""].values())
    groups: list[dict[str, Any]] = [
        {"params": [x for x in rest if x not in steady]},
        {"params": [x for x in rest if x in steady], "weight_decay": 0.0},
    ]
    for group in options.groups:
        own, of_group = list(chosen[group.name].values()), group.trained(training)
        decay, fixed = of_group.weight_decay, group.weight_decay is not None
        groups += [
            {"params": [x for x in own if fixed or x not in steady], "weight_decay": decay},
            {"params": [x for x in own if not fixed and x in steady], "weight_decay": 0.0},
        ]
        rates += [of_group, of_group]
        if group.learning_rate == 0:
            for one in own:
                one.requires_grad_(False)
    rate, decay = training.learning_rate, training.weight_decay
    optimizer: torch.optim.Optimizer
    if training.optimizer == "sgd":
        optimizer = torch.optim.SGD(groups, lr=rate, weight_decay=decay)
    elif training.optimizer == "rmsprop":
        optimizer = torch.optim.RMSprop(groups, lr=rate, eps=training.epsilon, weight_decay=decay)
    else:
        first, second = training.betas
        optimizer = torch.optim.AdamW(
            groups,
            lr=rate,
            betas=(first, second),
            eps=training.epsilon,
            weight_decay=decay,
            fused=True,  # on a CPU, a fifth of the time
        )
    learned = [one for one in parameters.values() if one.requires_grad]
    return ModelOptimizer(options, training, optimizer, learned, rates)


def _steady(model: nn.Module) -> Iterator[nn.Parameter]:
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            yield from module.parameters()
    yield from (weight for name, weight in model.named_parameters() if name.endswith("bias"))


def _assigned(
    what: str, patterns: Mapping[str, Sequence[str]], parameters: Mapping[str, nn.Parameter]
) -> dict[str, dict[str, nn.Parameter]]:
    """Each parameter under the one name whose patterns match it; the rest under the one without."""
    rest = [name for name, of in patterns.items() if not of]
    if len(rest) > 1:
        raise SpecError(
            f"{what}: {' and '.join(rest)} name no parameters, and only one can train the rest; "
            "give the others `parameters`"
        )
    for owner, of in patterns.items():
        for pattern in of:
            if not any(_matches(pattern, name) for name in parameters):
                top = sorted({name.split(".")[0] for name in parameters})
                raise SpecError(
                    f"{what}.{owner}.parameters has {pattern!r}, which matches no parameter; the "
                    f"modules are {', '.join(top)}, and parameters have names such as "
                    f"{next(iter(parameters))}"
                )
    assigned: dict[str, dict[str, nn.Parameter]] = {owner: {} for owner in patterns}
    for name, parameter in parameters.items():
        owners = [owner for owner, of in patterns.items() if any(_matches(one, name) for one in of)]
        owners = owners or rest
        if len(owners) != 1:
            by = " and ".join(owners) or "none"
            raise SpecError(
                f"{what}: the parameter {name} is trained by {by}; each needs exactly one, and one "
                "without `parameters` trains the rest"
            )
        assigned[owners[0]][name] = parameter
    return assigned


def _matches(pattern: str, name: str) -> bool:
    if name == pattern or name.startswith(f"{pattern}."):
        return True
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error as error:
        raise SpecError(f"{pattern!r} is not a regular expression: {error}") from error


def learning_rate(
    step: int,
    total_steps: int,
    training: TrainingOptions,
    evaluations: Sequence[Evaluation] = (),
    warmup_epoch_steps: int = 0,
) -> float:
    """The rate of one step (0-based): a linear rise over the warm-up, then as the schedule says.

    ``plateau`` and ``restarts`` go by the ``evaluations`` before the step.

    >>> options = TrainingOptions(learning_rate=1.0, warmup_steps=2)
    >>> [learning_rate(step, 6, options) for step in range(6)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    >>> cosine = TrainingOptions(learning_rate=1.0, warmup_steps=2, schedule="cosine")
    >>> [round(learning_rate(step, 6, cosine), 2) for step in range(6)]
    [0.5, 1.0, 1.0, 0.85, 0.5, 0.15]
    >>> root = TrainingOptions(learning_rate=1.0, warmup_steps=2, schedule="inverse_sqrt")
    >>> [round(learning_rate(step, 6, root), 2) for step in (0, 1, 2, 7)]
    [0.5, 1.0, 0.82, 0.5]
    """
    warmup = max(
        training.warmup_steps,
        int(training.warmup_share * total_steps),
        warmup_epoch_steps,
    )
    if step < warmup:
        return training.learning_rate * (step + 1) / warmup
    if training.schedule == "plateau":
        decays = plateaus([one.headline for one in evaluations], training.decay_after)
        return float(training.learning_rate * training.decay**decays)
    if training.schedule == "restarts":
        return float(
            training.learning_rate * training.decay ** len(restarts(evaluations, training))
        )
    if training.schedule == "constant":
        return training.learning_rate
    if training.schedule == "inverse_sqrt":
        return float(training.learning_rate * (max(1, warmup) / (step + 1)) ** 0.5)
    left = max(0.0, (total_steps - step) / max(1, total_steps - warmup))
    if training.schedule == "cosine":
        return training.learning_rate * (1 - math.cos(math.pi * left)) / 2
    return training.learning_rate * left


def plateaus(headlines: Sequence[float], after: int = 0) -> int:
    """Number of evaluations no better than the best one before; the first ``after`` do not count.

    >>> plateaus([0.5, 0.4, 0.6, 0.6, 0.5], after=1)
    3
    """
    return sum(
        headline <= max(headlines[:number])
        for number, headline in enumerate(headlines)
        if number >= max(1, after)
    )
