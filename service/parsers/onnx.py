"""ONNX Runtime and tokenizers for parsers that Parsebank trained."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import tokenizers

from syntax.errors import ModelLoadError

_GPU: Final = "CUDAExecutionProvider"


def open_program(path: Path, remedy: str, *, gpu: bool = False) -> Any:
    """Open a program as an ``onnxruntime.InferenceSession``; raises `ModelLoadError`.

    It runs on one thread: the workers are the cores, and threads do not survive a fork.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    providers = [*([_GPU] if gpu else []), "CPUExecutionProvider"]
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=providers)
    except Exception as error:  # ONNX Runtime's errors have no class in common
        raise ModelLoadError(
            f"ONNX Runtime cannot load {path}: {type(error).__name__}: {str(error)[:300]}; "
            f"{remedy}",
            path=str(path),
        ) from error


def read_tokenizer(path: Path, remedy: str) -> Any:
    """Read a tokenizer that neither cuts nor pads; raises `ModelLoadError`."""
    try:
        backend = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for an unreadable file
        raise ModelLoadError(
            f"{path} is no tokenizer ({error}); {remedy}", path=str(path)
        ) from None
    backend.no_truncation()
    backend.no_padding()
    return backend


def wants_gpu(device: str) -> bool:
    """True for a GPU; ``cuda`` is refused where ONNX Runtime was not built for one."""
    import onnxruntime

    built = _GPU in onnxruntime.get_available_providers()
    if device == "cuda" and not built:
        raise ModelLoadError(
            "device is cuda, but ONNX Runtime was not built for a GPU; install onnxruntime-gpu in "
            "place of onnxruntime, or use auto or cpu"
        )
    return built and device != "cpu"


def onnx_version() -> str:
    return f"onnxruntime {version('onnxruntime')}"
