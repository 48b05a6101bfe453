"""Optimizers, and the learning rate of each step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from trainer.options import TrainingOptions
from trainer.progress import Evaluation


def new_optimizer(model: nn.Module, training: TrainingOptions) -> torch.optim.Optimizer:
    """The optimizer of a run. Biases and weights of LayerNorm do not decay, as BERT's."""
    steady = set(_steady(model))
    groups: list[dict[str, Any]] = [
        {"params": [x for x in model.parameters() if x not in steady]},
        {"params": [x for x in model.parameters() if x in steady], "weight_decay": 0.0},
    ]
    rate, decay = training.learning_rate, training.weight_decay
    if training.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=rate, weight_decay=decay)
    return torch.optim.AdamW(groups, lr=rate, eps=training.epsilon, weight_decay=decay)


def _steady(model: nn.Module) -> Iterator[nn.Parameter]:
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            yield from module.parameters()
    yield from (weight for name, weight in model.named_parameters() if name.endswith("bias"))


def learning_rate(
    step: int, total_steps: int, training: TrainingOptions, evaluations: Sequence[Evaluation] = ()
) -> float:
    """Of one step (0-based): a linear rise over the warm-up, then what the schedule says.

    Args:
        step: Number of the step.
        total_steps: Steps planned.
        training: Rate, warm-up and schedule.
        evaluations: Those before the step; ``plateau`` goes by them.

    >>> options = TrainingOptions(learning_rate=1.0, warmup_steps=2)
    >>> [learning_rate(step, 6, options) for step in range(6)]
    [0.0, 0.5, 1.0, 0.75, 0.5, 0.25]
    """
    warmup = max(training.warmup_steps, int(training.warmup_share * total_steps))
    if step < warmup:
        return training.learning_rate * step / warmup
    if training.schedule == "plateau":
        decays = plateaus([one.headline for one in evaluations], training.decay_after)
        return float(training.learning_rate * training.decay**decays)
    return training.learning_rate * max(0.0, (total_steps - step) / max(1, total_steps - warmup))


def plateaus(headlines: Sequence[float], after: int = 0) -> int:
    """How many evaluations were no better than the best one before.

    Args:
        headlines: Of the evaluations, in order; higher is better.
        after: Evaluations at the beginning that do not count.

    >>> plateaus([0.5, 0.4, 0.6, 0.6, 0.5], after=1)
    3
    """
    return sum(
        headline <= max(headlines[:number])
        for number, headline in enumerate(headlines)
        if number >= max(1, after)
    )
