"""Random numbers of SplitMix64, which do not depend on the release of a library.

The definition is fixed, so that old runs can be repeated. Source: Steele, Lea and Flood (2014),
"Fast splittable pseudorandom number generators".
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.fingerprint import fingerprint

_AT_ONCE: Final = 1 << 16
"""Outputs that are computed together, so that they stay in the processor's cache."""


def stream_seed(*content: Any) -> int:
    """A 64-bit seed that depends on plain JSON content only.

    >>> stream_seed(0, 1, "chunks") == stream_seed(0, 1, "chunks") != stream_seed(0, 2, "chunks")
    True
    """
    return int(fingerprint(list(content))[:16], 16)


def splitmix(size: int, seed: int) -> NDArray[np.uint64]:
    """First outputs from a seed. *Shape:* (size,), uint64.

    >>> splitmix(1, 1234567).tolist()
    [6457827717110365317]
    """
    outputs = np.empty(size, np.uint64)
    for start in range(0, size, _AT_ONCE):
        steps = np.arange(start + 1, min(start + _AT_ONCE, size) + 1, dtype=np.uint64)
        state = np.uint64(seed) + steps * np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        outputs[start : start + len(state)] = state ^ (state >> np.uint64(31))
    return outputs
