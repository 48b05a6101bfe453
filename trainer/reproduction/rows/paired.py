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
        f"to {found.high:+.2f}, {p_value(found.bootstrap)}; by permutation "
        f"{p_value(found.permutation)}."
    )


def p_value(p: float) -> str:
    """A probability as text; no test of ours can tell one below .001 from 0.

    >>> p_value(0.0002), p_value(0.0404)
    ('p < .001', 'p = .040')
    """
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1)


def gain(
    name: str, published: float | None, one: Sequence[float], other: Sequence[float]
) -> Figure:
    return Figure(name, published, tuple(a - b for a, b in zip(one, other, strict=True)))
