"""Counts of what a batch has nothing of to learn from; nothing here imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_PREFIX: Final = "outcome:"


def outcome_arrays(counts: Mapping[str, int]) -> dict[str, NDArray[np.int64]]:
    return {f"{_PREFIX}{name}": np.array(count) for name, count in counts.items()}


def counted_outcomes(arrays: Mapping[str, Any]) -> dict[str, int]:
    return {
        name.removeprefix(_PREFIX): int(count)
        for name, count in arrays.items()
        if name.startswith(_PREFIX)
    }
