"""The model of an earlier run, part by part. Nothing here imports torch before weights are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from syntax.errors import ModelLoadError, SpecError
from syntax.strict_json import parse_json

if TYPE_CHECKING:
    from torch import Tensor

    from trainer.requirements import Requirements


def run_config(run: Path) -> dict[str, Any]:
    """The stored configuration of the model of a run; ``run`` is its output or model folder."""
    try:
        content = parse_json((_folder(run) / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise _cannot_load(run, error) from error
    if not isinstance(content, dict) or not {"model", "encoder"} <= content.keys():
        raise ModelLoadError(f"the model in {run} is none that a run has written")
    return content


def run_weights(run: Path, part: str) -> dict[str, Tensor]:
    """The weights of a part of the model of a run, such as ``encoder``, by their names there."""
    from safetensors.torch import load_file

    try:
        found = load_file(_folder(run) / "model.safetensors")
    except OSError as error:
        raise _cannot_load(run, error) from error
    prefix = f"{part}."
    return {
        name.removeprefix(prefix): weight
        for name, weight in found.items()
        if name.startswith(prefix)
    }


def check_same_tokenizer(run: Path, ours: Requirements) -> None:
    theirs = run_config(run)["requires"]
    if theirs["tokenizer"] != ours.tokenizer:
        raise SpecError(
            f"the run in {run} reads pieces of {theirs['tokenizer_name']} "
            f"({theirs['tokenizer'][:12]}), and the data are of {ours.tokenizer_name} "
            f"({ours.tokenizer[:12]}); backfill them with the tokenizer of the run"
        )


def _folder(run: Path) -> Path:
    return run / "model" if (run / "model").is_dir() else run


def _cannot_load(run: Path, error: Exception) -> ModelLoadError:
    return ModelLoadError(
        f"cannot load the model of the run in {run}: {error}; give the output folder of a finished "
        "run"
    )
