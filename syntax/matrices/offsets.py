"""Arrays for the compiled passes, and offsets of items that lie end to end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from syntax.errors import InputError

Offsets = NDArray[np.int64]
"""Start of each of T items, and the end of the last. *Shape:* (T + 1,), int64."""


def for_numba(values: ArrayLike, dtype: DTypeLike) -> NDArray[Any]:
    """A contiguous, aligned, writable array, so that numba compiles a pass for one layout only."""
    array = np.ascontiguousarray(values, dtype=dtype)
    return array if array.flags.carray else array.copy()


def as_offsets(values: ArrayLike, end: int) -> Offsets:
    """Offsets as int64, checked to ascend from 0 to ``end``."""
    offsets: Offsets = for_numba(values, np.int64)
    if offsets.ndim != 1 or not len(offsets) or offsets[0] != 0 or offsets[-1] != end:
        raise _not_ascending(offsets, end)
    if sizes(offsets).min(initial=0) < 0:
        raise _not_ascending(offsets, end)
    return offsets


def _not_ascending(offsets: Offsets, end: int) -> InputError:
    shown = np.array2string(offsets, threshold=8, edgeitems=3)
    return InputError(f"offsets are {shown}; they must be one vector, ascending from 0 to {end}")


def offsets_of(counts: ArrayLike) -> Offsets:
    """Offsets of items of these sizes. *Shape:* (T,) gives (T + 1,)."""
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64)), dtype=np.int64)


def sizes(offsets: Offsets) -> Offsets:
    return offsets[1:] - offsets[:-1]


def owner_of(position: int, offsets: Offsets) -> int:
    return int(np.searchsorted(offsets, position, side="right")) - 1


def round_up(length: int, multiple: int) -> int:
    return -(-length // multiple) * multiple
