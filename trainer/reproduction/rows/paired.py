"""Scores of two systems on the same data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trainer.metrics.significance import Difference, difference
from trainer.reproduction.row import Figure

Scores = Mapping[str, float]


def mean(scores: Scores) -> float:
    return sum(scores.values()) / len(scores)


def over_languages(one: Sequence[Scores], other: Sequence[Scores]) -> Difference:
    """The mean difference, with its bootstrap over languages; scores are means over seeds."""
    names = sorted(one[0])
    # An example is a language, whose score counts once in the mean.
    first, second = (
        np.array([[[of[name], 1.0] for of in seeds] for name in names]) for seeds in (one, other)
    )
    return difference(first, second, resamples=10_000)


def less(
    name: str, published: float | None, one: Sequence[Scores], other: Sequence[Scores]
) -> Figure:
    pairs = zip(one, other, strict=True)
    return Figure(name, published, tuple(mean(a) - mean(b) for a, b in pairs))


def note(name: str, found: Difference) -> str:
    return (
        f"{name}: {found.difference:+.2f}, 95 % of the bootstrap over languages {found.low:+.2f} "
        f"to {found.high:+.2f}, p = {found.bootstrap:.3f}; by permutation p = "
        f"{found.permutation:.3f}."
    )


def gain(
    name: str, published: float | None, one: Sequence[float], other: Sequence[float]
) -> Figure:
    return Figure(name, published, tuple(a - b for a, b in zip(one, other, strict=True)))


def is_gain(difference: Figure) -> bool | None:
    """True if 95 % of Student's t over seeds are above 0; None if 0 is among them."""
    if difference.interval is None:
        return None
    low, high = difference.interval
    return low > 0 if low > 0 or high < 0 else None
