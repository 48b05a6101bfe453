"""The device that torch computes on, for the backends that use torch; it is imported when used."""

from __future__ import annotations

import os
import sys

from syntax.errors import ModelLoadError


def choose_device(wanted: str) -> str:
    """``cuda`` if requested, or for ``auto`` if available; else ``cpu``."""
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
    """Whether memory ran out, the machine's or the GPU's: no fault of the text's."""
    torch = sys.modules.get("torch")
    return isinstance(error, MemoryError) or (
        torch is not None and isinstance(error, torch.OutOfMemoryError)
    )
