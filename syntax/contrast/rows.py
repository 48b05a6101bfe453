"""Where tree samples are written to."""

from __future__ import annotations

from typing import NamedTuple

from syntax.contrast.draws import IntArray


class TreeRows(NamedTuple):
    """Samples, filled from the first on.

    Attributes:
        root: *Shape:* (S,).
        positive: *Shape:* (S, W).
        negatives: *Shape:* (S, K, W).
    """

    root: IntArray
    positive: IntArray
    negatives: IntArray
