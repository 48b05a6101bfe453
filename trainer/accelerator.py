"""The processes of a run and their devices."""

from __future__ import annotations

import os
from typing import Final

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.state import AcceleratorState

from syntax.errors import SpecError
from trainer.options import Recipe

_PRECISION: Final = {"fp32": "no", "bf16": "bf16", "fp16": "fp16"}


def new_accelerator(recipe: Recipe) -> Accelerator:
    """One process of a run; all run on accelerators, or all on the CPU."""
    precision = _PRECISION[recipe.training.precision]
    # The parts of the model that belong to one stream have no gradients in steps of the others,
    # and objectives none before they begin.
    partial = bool(recipe.streams) or recipe.training.delay > 0
    unused = [DistributedDataParallelKwargs(find_unused_parameters=True)] if partial else []
    # It would keep the precision of the first run for the whole process, and refuse another.
    AcceleratorState._reset_state()
    # Without `cpu`, accelerate lets each process on the CPU train by itself.
    accelerator = Accelerator(
        cpu=not torch.accelerator.is_available(), mixed_precision=precision, kwargs_handlers=unused
    )
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if accelerator.num_processes != started:
        raise SpecError(
            f"{started} processes were started, and {accelerator.num_processes} can train together "
            f"on {accelerator.device.type}; start one, or set ACCELERATE_USE_CPU=true"
        )
    return accelerator
