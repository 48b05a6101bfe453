"""Recurrent parts in mixed precision."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor, nn

Module = TypeVar("Module", bound=nn.Module)
Given = ParamSpec("Given")
Found = TypeVar("Found")


def in_full_precision(
    method: Callable[Concatenate[Module, Given], Found],
) -> Callable[Concatenate[Module, Given], Found]:
    """Let a method of a module compute as precisely as its weights, under autocast, too.

    Not every processor has an LSTM in half precision (oneDNN's asks for AVX-512), and what a state
    loses to rounding at one step is missing at all steps after it.
    """

    @wraps(method)
    def full(self: Module, /, *given: Given.args, **named: Given.kwargs) -> Found:
        weight = next(self.parameters())
        precise: Any = [
            one.to(weight.dtype) if isinstance(one, Tensor) and one.is_floating_point() else one
            for one in given
        ]
        with torch.autocast(weight.device.type, enabled=False):
            return method(self, *precise, **named)

    return full
