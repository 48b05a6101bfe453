"""Checkpoints: everything that a run needs to resume exactly.

A new folder is written beside the old one, and then takes its place: a crash leaves one of them.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from syntax.errors import SpecError

FORMAT: Final = 2


def new_folder(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.new")


def clear_new(folder: Path) -> None:
    """Delete what a crash may have left; one process calls it before any process writes."""
    shutil.rmtree(new_folder(folder), ignore_errors=True)


def publish_new(folder: Path) -> None:
    old = _old_folder(folder)
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    new_folder(folder).rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def save_checkpoint(folder: Path, state: Mapping[str, Any] | None, rank: int) -> None:
    """Write one process's part beside the previous checkpoint; only the main has ``state``."""
    part = new_folder(folder)
    part.mkdir(parents=True, exist_ok=True)
    torch.save(random_state(), part / f"random-{rank}.pt")
    if state is not None:
        torch.save({"format": FORMAT, **state}, part / "state.pt")


def write_checkpoint(
    folder: Path, state: Mapping[str, Any], rank: int, wait: Callable[[], object]
) -> None:
    """Replace the checkpoint; ``wait`` returns once every process has called it."""
    if rank == 0:
        clear_new(folder)
    wait()
    save_checkpoint(folder, state if rank == 0 else None, rank)
    wait()
    if rank == 0:
        publish_new(folder)
    wait()


def find_checkpoint(folder: Path) -> Path:
    """The newest complete checkpoint: after a crash in `publish_new`, it is the old one."""
    for candidate in (folder, _old_folder(folder)):
        if (candidate / "state.pt").exists():
            return candidate
    raise SpecError(
        f"there is no checkpoint in {folder.parent} to resume from; train with "
        "training.checkpoint_every, or start anew without --resume"
    )


def has_checkpoint(folder: Path) -> bool:
    return any((one / "state.pt").exists() for one in (folder, _old_folder(folder)))


def load_checkpoint(folder: Path) -> dict[str, Any]:
    state: dict[str, Any] = torch.load(folder / "state.pt", map_location="cpu", weights_only=True)
    if state["format"] != FORMAT:
        raise SpecError(
            f"{folder} has format {state['format']} of another release, and this one reads "
            f"{FORMAT}; resume with the release that wrote it, or train again"
        )
    return state


def load_random_state(folder: Path, rank: int) -> dict[str, Any] | None:
    """Generators of a process; None if the saved run had fewer processes."""
    path = folder / f"random-{rank}.pt"
    if not path.exists():
        return None
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return state


def _old_folder(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.old")


def random_state() -> dict[str, Any]:
    kind, keys, *rest = np.random.get_state(legacy=True)
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {
        "python": random.getstate(),
        "numpy": [kind, np.asarray(keys).tolist(), *rest],
        "torch": torch.get_rng_state(),
        "cuda": cuda,
    }


def set_random_state(state: Mapping[str, Any]) -> None:
    random.setstate(state["python"])
    kind, keys, *rest = state["numpy"]
    np.random.set_state((kind, np.array(keys, np.uint32), *rest))
    torch.set_rng_state(state["torch"])
    if state["cuda"] and torch.cuda.device_count() == len(state["cuda"]):
        torch.cuda.set_rng_state_all(state["cuda"])
