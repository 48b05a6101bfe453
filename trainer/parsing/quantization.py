"""Linear layers that learn to be computed in 8-bit integers.

Inputs are rounded to 8 bits between two learned bounds, weights to 7 bits in steps of their own for
each output, as ONNX Runtime computes them: on processors without VNNI, the product of two 8-bit
numbers and its neighbour do not fit into the 16 bits of an intermediate sum, and 7 bits do.
Gradients pass through the rounding (Jacob et al. 2018; bounds as in Esser et al. 2020, LSQ, and
Choi et al. 2018, PACT).

The bounds are fixed after training. So what a text is rounded to never depends on its batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WEIGHT_LEVELS: Final = 63

INPUT_LEVELS: Final = 255

State = Literal["exact", "observing", "rounding"]


class RoundedLinear(nn.Linear):
    """A linear layer in one of three states: exact; noting the bounds of inputs; rounding."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        super().__init__(inputs, outputs, bias)
        self.low_high = nn.Parameter(torch.zeros(2))
        self.state: State = "exact"

    @classmethod
    def like(cls, layer: nn.Linear) -> RoundedLinear:
        made = cls(layer.in_features, layer.out_features, layer.bias is not None)
        made.weight, made.bias = layer.weight, layer.bias
        return made

    def forward(self, states: Tensor) -> Tensor:
        if self.state == "exact":
            return super().forward(states)
        if self.state == "observing":
            self._observe(states)
            return super().forward(states)
        low, high = self.bounds()
        inputs: Tensor = _RoundedInputs.apply(states, low, high)  # type: ignore[no-untyped-call]
        return F.linear(inputs, _rounded_weight(self.weight), self.bias)

    def bounds(self) -> tuple[Tensor, Tensor]:
        """The bounds of the inputs; 0 is between them, since padding must stay 0."""
        low, high = self.low_high
        return low.clamp(max=0.0), high.clamp(min=1e-4)

    @torch.no_grad()
    def _observe(self, states: Tensor) -> None:
        low, high = self.low_high
        found_low, found_high = states.min(), states.max()
        low.copy_(torch.minimum(low, found_low))
        high.copy_(torch.maximum(high, found_high))


def rounded_layers(model: nn.Module) -> Iterator[RoundedLinear]:
    return (layer for layer in model.modules() if isinstance(layer, RoundedLinear))


def set_state(model: nn.Module, state: State) -> None:
    for layer in rounded_layers(model):
        layer.state = state


@contextmanager
def observing(model: nn.Module) -> Iterator[None]:
    """Note the bounds of all inputs; afterwards the layers round."""
    set_state(model, "observing")
    yield
    set_state(model, "rounding")


def replace_linear(module: nn.Module) -> None:
    for name, part in module.named_children():
        if isinstance(part, nn.Linear) and not isinstance(part, RoundedLinear):
            setattr(module, name, RoundedLinear.like(part))
        else:
            replace_linear(part)


def share_bounds(*layers: RoundedLinear) -> None:
    for layer in layers[1:]:
        layer.low_high = layers[0].low_high


def weight_steps(weight: Tensor) -> Tensor:
    """The step of each row's integers. *Shape:* (outputs,)."""
    return weight.detach().abs().amax(1).clamp(min=1e-8) / WEIGHT_LEVELS


def _rounded_weight(weight: Tensor) -> Tensor:
    steps = weight_steps(weight)[:, None]
    rounded = (weight.detach() / steps).round() * steps
    return weight + (rounded - weight.detach())


class _RoundedInputs(torch.autograd.Function):
    """Inputs rounded between two bounds; the gradient of those outside goes to their bound.

    What automatic differentiation would write out takes a third of a training step.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, low: Tensor, high: Tensor) -> Tensor:
        ctx.save_for_backward(states, low, high)
        step = (high - low) / INPUT_LEVELS
        zero = (-low / step).round()
        levels = (states / step).round_().add_(zero).clamp_(0, INPUT_LEVELS)
        return levels.sub_(zero).mul_(step)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        states, low, high = ctx.saved_tensors
        below, above = states < low, states > high
        inside = gradient.masked_fill(below | above, 0.0)
        return inside, gradient[below].sum(), gradient[above].sum()
