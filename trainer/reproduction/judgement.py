"""From figures to a verdict: floors, intervals against an effect of interest, power.

A rule names a smallest effect of interest beforehand. A claim of a gain holds where the 95 %
interval of the gain is above 0, fails where it is not above 0 and below the effect of interest, and
is undecided otherwise; intervals over seeds need three of them. Where an arm stays below its floor,
such as the majority class or a baseline that works, nothing is tested at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

Interval = tuple[float, float]
Kind = Literal["reproduction", "sanity check", "own claim"]

_ANSWERS: Final[dict[Kind, tuple[str, str]]] = {
    "reproduction": ("reproduced", "not reproduced"),
    "sanity check": ("passed", "failed"),
    "own claim": ("holds", "does not hold"),
}
_MOST_SEEDS: Final = 10_000
_QUANTILES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Floor:
    """The least score with which an arm tests anything: named before the row runs."""

    arm: str
    score: float
    least: float

    @property
    def is_missed(self) -> bool:
        return self.score < self.least

    def __str__(self) -> str:
        sign = "below" if self.is_missed else "not below"
        return f"{self.arm} {self.score:.1f}, {sign} its floor of {self.least:g}"


@dataclass(frozen=True, slots=True)
class Design:
    """Size of a trial, by the effect of interest and the spread of a pilot.

    Attributes:
        effect: The smallest difference that is of interest, in points.
        spread: Standard deviation over seeds of that difference in a pilot.
        absent: Whether the claim is that there is none (`is_none`): ``effect`` is then the margin.
    """

    effect: float
    spread: float
    absent: bool = False

    @property
    def seeds(self) -> int:
        """Seeds by which a paired t-test finds the effect with a power of .8 (two sides, 5 %)."""
        return next((n for n in range(3, _MOST_SEEDS) if self.power(n) >= 0.8), _MOST_SEEDS)

    def power(self, seeds: int) -> float:
        """Probability that the 95 % interval over seeds is above 0, if the effect is there.

        By the noncentral t distribution (Cohen 1988, Statistical Power Analysis, section 2.2). Of a
        claim that there is none: that it lies within the margin, if the difference is 0.
        """
        from scipy import stats

        bound = float(stats.t.ppf(0.975, seeds - 1))
        shift = math.sqrt(seeds) * self.effect / self.spread
        if not self.absent:
            return float(stats.nct.sf(bound, seeds - 1, shift))
        quantiles = (np.arange(_QUANTILES) + 0.5) / _QUANTILES  # of the spread that is found
        found = np.sqrt(stats.chi2.ppf(quantiles, seeds - 1) / (seeds - 1))
        return float(np.mean(np.maximum(2 * stats.norm.cdf(shift - bound * found) - 1, 0)))

    def __str__(self) -> str:
        what = "a margin" if self.absent else "an effect"
        return (
            f"{what} of {self.effect:g} points, with a spread of {self.spread:g} over seeds, "
            f"takes {self.seeds} seeds (power .8)"
        )


def is_gain(interval: Interval | None, effect: float = 0.0) -> bool | None:
    """True above 0, else False below the effect of interest, else None.

    >>> is_gain((0.2, 3.0)), is_gain((-2.0, 0.4), 0.5), is_gain((-2.0, 0.6), 0.5)
    (True, False, None)
    >>> is_gain((0.1, 0.3), 0.5)  # a gain, though a small one
    True
    """
    if interval is None:
        return None
    low, high = interval
    if low > 0:
        return True
    return False if high < effect else None


def is_none(interval: Interval | None, margin: float) -> bool | None:
    """For claims that nothing changes: True within the margin, False outside, else None.

    >>> is_none((-0.3, 0.4), 0.5), is_none((0.6, 2.0), 0.5), is_none((-0.3, 0.6), 0.5)
    (True, False, None)
    """
    if interval is None:
        return None
    low, high = interval
    if -margin < low and high < margin:
        return True
    return False if low > margin or high < -margin else None


def every(answers: list[bool | None]) -> bool | None:
    """False if one claim fails, None if one is undecided, else True."""
    return False if False in answers else None if None in answers else True


def verdict(kind: Kind, holds: bool | None, floors: tuple[Floor, ...], reduced: bool) -> str:
    """The answer in words; a reduced trial is only consistent with a published claim, or not."""
    if any(floor.is_missed for floor in floors):
        answer = "not testable"
    elif holds is None:
        answer = "undecided"
    elif reduced and kind == "reproduction":
        answer = "consistent" if holds else "inconsistent"
    else:
        answer = _ANSWERS[kind][0 if holds else 1]
    return f"smaller trial: {answer}" if reduced else answer
