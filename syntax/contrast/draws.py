"""Random numbers and choices in compiled passes, from the generator of `syntax.mixing.splitmix`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.compiled import njit

State = NDArray[np.uint64]
"""State of the generator: one number, which every draw advances. *Shape:* (1,), uint64."""

IntArray = NDArray[np.int32]

Index = int | np.integer[Any]

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11))


@njit(cache=True, nogil=True)
def next_number(state: State) -> np.uint64:
    state[0] += _STEP
    mixed = state[0]
    mixed = (mixed ^ (mixed >> _SHIFTS[0])) * _FIRST
    mixed = (mixed ^ (mixed >> _SHIFTS[1])) * _SECOND
    return np.uint64(mixed ^ (mixed >> _SHIFTS[2]))


@njit(cache=True, nogil=True)
def below(state: State, bound: int) -> int:
    return int(next_number(state) % np.uint64(bound))


@njit(cache=True, nogil=True)
def happens(state: State, probability: float) -> bool:
    return bool(np.float64(next_number(state) >> _SHIFTS[3]) * 2.0**-53 < probability)


@njit(cache=True, nogil=True)
def choose(state: State, items: IntArray, size: int, count: int) -> int:
    """Move ``count`` random ones of ``size`` items, or all, to the front; their number."""
    chosen = min(size, count)
    for at in range(chosen):
        other = at + below(state, size - at)
        items[at], items[other] = items[other], items[at]
    return chosen


@njit(cache=True, nogil=True)
def shuffled(state: State, count: int) -> IntArray:
    items = np.arange(count).astype(np.int32)
    choose(state, items, count, count)
    return items
