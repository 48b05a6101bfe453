"""Two encoders that were probed on the same examples: differences, and tests of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from trainer.metrics.significance import difference
from trainer.results import read_json

_SAME = ("dataset", "lang")


def read_curves(path: Path, tasks: Sequence[str]) -> dict[str, Any]:
    """Content of a file of ``parsebank probe --output`` that has all of the tasks."""
    found = read_json(path, f"there is no {path}; probe the other encoder with it as `output=`")
    known = {
        task for task, one in found.get("tasks", {}).items() if "examples" in one.get("best", {})
    }
    if missing := [task for task in tasks if task not in known]:
        raise SpecError(
            f"{path} has no answers to {', '.join(missing)}; probe its encoder again, with these "
            "tasks, into a new file"
        )
    return found


def compare_probes(
    ours: Mapping[str, Any], theirs: Mapping[str, Any], tasks: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Differences of the layers that are best on dev, by task, as `trainer.metrics.significance`.

    Examples are joined by their ids, since another tokenizer may leave out others.
    """
    for fact in _SAME:
        if ours[fact] != theirs[fact]:
            raise SpecError(
                f"the encoders were probed on the {fact} {ours[fact]!r} and {theirs[fact]!r}; only "
                "answers to the same questions can be compared"
            )
    found = {}
    for task in tasks:
        one, other = (side["tasks"][task]["best"] for side in (ours, theirs))
        shared = [name for name in one["examples"] if name in other["examples"]]
        if len(shared) < 2:
            raise SpecError(
                f"the encoders share {len(shared)} examples of {task}; are the splits the same?"
            )
        first, second = (
            _shares([side["examples"][name] for name in shared]) for side in (one, other)
        )
        if first.shape != second.shape:
            raise SpecError(f"the encoders were probed on {task} with other numbers of seeds")
        tested = difference(first, second)
        found[task] = {
            "layers": [one["layer"], other["layer"]],
            "examples": len(shared),
            **asdict(tested),
            "difference": tested.difference,
        }
    return found


def _shares(rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Right answers by seed and their number, (N, S + 1), as shares. *Shape:* (N, S, 2)."""
    numbers = np.array(rows, float)
    right, items = numbers[:, :-1], numbers[:, -1:]
    return np.stack([right, np.broadcast_to(items, right.shape)], -1)
