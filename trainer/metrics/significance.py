"""Tests whether one system is better than another by more than chance, on the same examples.

The paired bootstrap (Koehn 2004, "Statistical Significance Tests for Machine Translation
Evaluation") and approximate randomisation (Noreen 1989; Yeh 2000, "More accurate tests for the
statistical significance of result differences") take any metric; Student's paired t-test takes
ratios of sums; McNemar's exact test takes right and wrong. The counting is scipy's.

A metric is a function of sums over examples: of their shares
(`trainer.evaluation.predictions.Prediction`), or of their counts in each class. Whole examples are
resampled.

Letters in shapes: ``N`` examples, ``R`` runs or languages that scores are averaged over, ``K``
numbers that are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from syntax.extras import missing_extra

Floats: TypeAlias = NDArray[np.float64]
Metric: TypeAlias = Callable[[Floats], Floats]
"""From sums, *shape* (..., K), to the metric, (...)."""

_CELLS: Final = 4_000_000
_SAME: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of two systems on the same examples.

    Attributes:
        low, high: The bounds that hold ``confidence`` of the bootstrap's differences.
        bootstrap: Two-sided p value of the paired bootstrap: twice the share of the resamples in
            which the difference is not on the side of zero that most are on.
        permutation: Two-sided p value of approximate randomisation: how often a difference as
            large as this one comes from systems that swap their outputs by chance. Exact, over
            all swaps, where these are no more than the resamples.
        t_test: Two-sided p value of Student's paired t-test (`paired_t_test`); None of a metric
            that is not a ratio of sums.
    """

    one: float
    other: float
    low: float
    high: float
    confidence: float
    bootstrap: float
    permutation: float
    t_test: float | None = None

    @property
    def difference(self) -> float:
        return self.one - self.other


@dataclass(frozen=True, slots=True)
class McNemar:
    """McNemar's test: examples that one system alone got right, and the exact p value."""

    only_one: int
    only_other: int
    p: float


def ratio(sums: Floats) -> Floats:
    """The first of two sums divided by the second; 0 over nothing.

    >>> ratio(np.array([[1.0, 4.0], [0.0, 0.0]])).tolist()
    [0.25, 0.0]
    """
    whole = sums[..., 1]
    return np.divide(sums[..., 0], whole, out=np.zeros_like(whole), where=whole != 0)


def difference(
    one: Floats,
    other: Floats,
    metric: Metric = ratio,
    *,
    resamples: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Difference:
    """Compare two systems by what each example adds to their sums, (N, R, K).

    Scores are means over R. Bootstrap and permutation have as many ``resamples`` each.
    """
    if len(one) < 2:
        raise SpecError(f"{len(one)} examples came; a test needs two or more")
    score = _Score(np.concatenate([one, other]), metric)
    first, second = np.split(np.arange(2 * len(one)), 2)
    options = {"n_resamples": resamples, "batch": score.batch, "vectorized": True}

    def gap(x: Any, y: Any, axis: int) -> Any:  # noqa: ARG001
        return score(x) - score(y)

    found = _bootstrap((first, second), gap, options, confidence, seed)
    interval, distribution = found.confidence_interval, found.bootstrap_distribution
    # The systems as they are count as one resample more, as in scipy's permutation test.
    least = 1 + min(int((distribution <= 0).sum()), int((distribution >= 0).sum()))
    bootstrap = min(1.0, 2 * least / (1 + len(distribution)))
    permutation = _scipy_stats().permutation_test(
        (first, second),
        gap,
        permutation_type="samples",
        rng=np.random.default_rng(seed),
        **options,
    )
    scores = (float(score(first)), float(score(second)))
    tests = (bootstrap, float(permutation.pvalue))
    t_test = paired_t_test(one, other) if metric is ratio else None
    bounds = (float(interval.low), float(interval.high))
    return Difference(*scores, *bounds, confidence, *tests, t_test)


def over_runs(
    one: Floats,
    other: Floats,
    metric: Metric = ratio,
    *,
    resamples: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """The percentile interval of a difference over runs and examples together, (N, R, K).

    Each resample draws R paired runs and, for all of them, N examples: the pigeonhole bootstrap of
    crossed factors (Owen 2007, https://arxiv.org/abs/0711.2612). Of few runs the variance is
    underestimated, by a factor of (R - 1) / R: three cover .90 where .95 is said.
    """
    N, R, _ = one.shape
    if N < 2 or R < 2:
        raise SpecError(f"{N} examples of {R} runs came; a test needs two or more of both")
    generator = np.random.default_rng(seed)
    found = np.empty(resamples)
    for at in range(resamples):
        times = generator.multinomial(N, np.full(N, 1 / N)).astype(float)
        sums = (np.tensordot(times, shares, 1) for shares in (one, other))
        gaps = np.subtract(*map(metric, sums))
        found[at] = gaps[generator.integers(R, size=R)].mean()
    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(found, [tail, 100 - tail])
    return float(low), float(high)


def paired_t_test(one: Floats, other: Floats) -> float:
    """Two-sided p value of Student's paired t-test over examples, of ratios of sums, (N, R, 2).

    An example's score is its part of the ratio. Where examples have denominators of different
    size, such as the F1 of entities, it is the ratio's linear part (the delta method): the score
    of all plus (numerator - score * denominator) / mean denominator. Scores are means over R.
    Differences that are all equal have a p value of 1 if they are zero, and otherwise of 0.

    >>> answers = [[1, 0], [1, 0], [1, 1], [0, 0]]  # right or wrong, of the two systems
    >>> shares = np.array([[[[side, 1.0]] for side in pair] for pair in answers])
    >>> round(paired_t_test(shares[:, 0], shares[:, 1]), 4)  # t = sqrt(3), 3 degrees of freedom
    0.1817
    """
    parts = _parts(one) - _parts(other)
    if np.ptp(parts) < _SAME:  # where t is a quotient by zero, or by what rounding left
        return 1.0 if abs(parts[0]) < _SAME else 0.0
    return float(_scipy_stats().ttest_1samp(parts, 0.0).pvalue)


def _parts(shares: Floats) -> Floats:
    """Each example's part of a mean over R of ratios. *Shape:* (N, R, 2) to (N,)."""
    score, size = ratio(shares.sum(0)), shares[..., 1].mean(0)
    rest = shares[..., 0] - score * shares[..., 1]
    parts: Floats = (score + np.divide(rest, size, out=np.zeros_like(rest), where=size != 0)).mean(
        1
    )
    return parts


def interval(
    shares: Floats,
    metric: Metric = ratio,
    *,
    resamples: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """The percentile interval of a score by the bootstrap, from what each example adds, (N, R, K).

    The score is a mean over R.
    """
    score = _Score(shares, metric)
    options = {"n_resamples": resamples, "batch": score.batch, "vectorized": True}

    def alone(x: Any, axis: int) -> Any:  # noqa: ARG001
        return score(x)

    whole = (np.arange(len(shares)),)
    found = _bootstrap(whole, alone, options, confidence, seed).confidence_interval
    return float(found.low), float(found.high)


def mcnemar(one: Sequence[bool], other: Sequence[bool]) -> McNemar:
    """McNemar's exact test: of the examples that one system alone got right, half to each?

    >>> mcnemar([True, True, True, True], [False, False, False, True])
    McNemar(only_one=3, only_other=0, p=0.25)
    """
    pairs = list(zip(one, other, strict=True))
    return sign_test(sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs))


def sign_test(first: int, second: int) -> McNemar:
    """The exact sign test: of the examples in which one system is better, half to each?"""
    either = first + second
    p = float(_scipy_stats().binomtest(first, either).pvalue) if either else 1.0
    return McNemar(first, second, p)


class _Score:
    """The score of examples by what each adds, (M, R, K), for many choices of them at once."""

    def __init__(self, shares: Floats, metric: Metric) -> None:
        self._metric, self._shape = metric, shares.shape[1:]
        # Columns lie in one piece: numbers are gathered from them ten times as fast as from rows.
        self._columns = np.ascontiguousarray(shares.reshape(len(shares), -1).T)
        self.batch = max(1, _CELLS // len(shares))

    def __call__(self, chosen: NDArray[np.int64]) -> Any:
        """Scores of choices. *Shape:* (..., N) to (...)."""
        sums = np.stack([column.take(chosen).sum(-1) for column in self._columns], -1)
        return self._metric(sums.reshape(*sums.shape[:-1], *self._shape)).mean(-1)


def _bootstrap(
    samples: tuple[NDArray[np.int64], ...],
    statistic: Callable[..., Floats],
    options: dict[str, Any],
    confidence: float,
    seed: int,
) -> Any:
    return _scipy_stats().bootstrap(
        samples,
        statistic,
        paired=len(samples) > 1,
        method="percentile",
        confidence_level=confidence,
        rng=np.random.default_rng(seed),
        **options,
    )


def _scipy_stats() -> Any:
    try:
        from scipy import stats
    except ImportError:
        raise missing_extra("tests of significance need scipy", "train") from None
    return stats
