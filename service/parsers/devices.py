"""Device of the backends that use torch, which is imported when used."""

from __future__ import annotations

import os
import sys

from syntax.errors import ModelLoadError


def choose_device(wanted: str) -> str:
    if wanted == "cpu":
        return "cpu"
    import torch

    # Ask the driver's library: the CUDA runtime's own answer would be of no use after a fork.
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    if torch.cuda.is_available():
        return "cuda"
    if wanted == "cuda":
        raise ModelLoadError("device is cuda, but torch finds no GPU; use auto or cpu")
    return "cpu"


def out_of_memory(error: Exception) -> bool:
    """True if the machine or the GPU ran out of memory: not a fault of the text."""
    torch = sys.modules.get("torch")
    return isinstance(error, MemoryError) or (
        torch is not None and isinstance(error, torch.OutOfMemoryError)
    )
