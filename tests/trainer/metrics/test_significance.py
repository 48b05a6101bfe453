"""Tests of differences: against the definitions, spelt out, and against scipy and scikit-learn."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import f1_score, matthews_corrcoef

from syntax.errors import SpecError
from trainer.metrics.classification import CLASS_METRICS, accuracy, class_counts, macro_f1, mcc
from trainer.metrics.significance import difference, mcnemar, ratio

SHARE = st.integers(0, 4).flatmap(lambda whole: st.tuples(st.integers(0, whole), st.just(whole)))
PAIRS = st.lists(st.tuples(SHARE, SHARE), min_size=2, max_size=7)
CLASSES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30)


def as_shares(side: list[tuple[int, int]]) -> np.ndarray:
    return np.array(side, float)[:, None, :]


def slow_f1(shares: list[tuple[int, int]]) -> float:
    whole = sum(share[1] for share in shares)
    return sum(share[0] for share in shares) / whole if whole else 0.0


def slow_permutation(one: list, other: list) -> float:
    """Of all ways to swap the systems' outputs, the share with a difference as large."""
    seen = abs(slow_f1(one) - slow_f1(other))
    sides = []
    for swaps in product([False, True], repeat=len(one)):
        swapped = [(b, a) if swap else (a, b) for a, b, swap in zip(one, other, swaps, strict=True)]
        sides.append(slow_f1([a for a, _ in swapped]) - slow_f1([b for _, b in swapped]))
    return float(np.mean([abs(side) >= seen - 1e-12 for side in sides]))


@settings(max_examples=30)
@given(PAIRS)
def test_the_permutation_test_equals_all_swaps_spelt_out(pairs) -> None:
    one, other = ([pair[side] for pair in pairs] for side in (0, 1))
    found = difference(as_shares(one), as_shares(other), resamples=200)
    assert found.one == pytest.approx(slow_f1(one))
    assert found.difference == pytest.approx(slow_f1(one) - slow_f1(other))
    # scipy doubles the smaller tail; the distribution is symmetric, so that is the same.
    assert found.permutation == pytest.approx(min(1.0, slow_permutation(one, other)))


def test_the_bootstrap_equals_resampling_spelt_out() -> None:
    rng = np.random.default_rng(1)
    whole = rng.integers(1, 5, 60)
    one, other = (rng.binomial(whole, p) for p in (0.7, 0.6))
    shares = [np.stack([side, whole], -1)[:, None, :].astype(float) for side in (one, other)]
    found = difference(*shares, resamples=4000, seed=3)
    again = np.random.default_rng(5)
    slow = []
    for _ in range(4000):
        chosen = again.integers(0, 60, 60)
        total = whole[chosen].sum()
        slow.append(one[chosen].sum() / total - other[chosen].sum() / total)
    low, high = np.quantile(slow, [0.025, 0.975])
    assert found.low == pytest.approx(low, abs=0.01)
    assert found.high == pytest.approx(high, abs=0.01)
    assert found.bootstrap == pytest.approx(2 * np.mean(np.array(slow) <= 0), abs=0.02)


def slow_t_test(one: list[float], other: list[float]) -> float:
    """Student 1908: the mean difference over its standard error, N - 1 degrees of freedom."""
    gaps = [a - b for a, b in zip(one, other, strict=True)]
    mean = sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1)
    t = mean / (variance / len(gaps)) ** 0.5
    return float(2 * stats.t.sf(abs(t), len(gaps) - 1))


def test_the_t_test_of_a_mean_is_students() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.random((2, 30))
    shares = [np.stack([side, np.ones(30)], -1)[:, None] for side in (one, other)]
    found = difference(*shares, resamples=100)
    assert found.t_test == pytest.approx(slow_t_test(list(one), list(other)))
    assert found.t_test == pytest.approx(stats.ttest_rel(one, other).pvalue)


def test_the_t_test_of_a_ratio_takes_its_linear_parts_and_agrees_with_the_bootstrap() -> None:
    rng = np.random.default_rng(2)
    whole = rng.integers(1, 9, 400)
    sides = [rng.binomial(whole, p) for p in (0.63, 0.6)]
    parts = []
    for side in sides:
        score = side.sum() / whole.sum()
        parts.append(
            [score + (a - score * n) / whole.mean() for a, n in zip(side, whole, strict=True)]
        )
        assert np.mean(parts[-1]) == pytest.approx(score)
    shares = [np.stack([side, whole], -1)[:, None].astype(float) for side in sides]
    found = difference(*shares, resamples=4000)
    assert found.t_test == pytest.approx(slow_t_test(*parts))
    assert found.t_test == pytest.approx(found.bootstrap, abs=0.03)


def test_the_t_test_of_equal_differences_is_certain_and_of_other_metrics_there_is_none() -> None:
    none, all_ = as_shares([(0, 1)] * 3), as_shares([(1, 1)] * 3)
    assert difference(none, none, resamples=100).t_test == 1.0
    assert difference(all_, none, resamples=100).t_test == 0.0
    counts = class_counts(np.array([[0], [1]]), np.array([[0], [0]]), 2)
    assert difference(counts, counts, mcc, resamples=100).t_test is None


def test_equal_systems_do_not_differ() -> None:
    shares = as_shares([(1, 1), (0, 1), (1, 1), (0, 1)])
    found = difference(shares, shares, resamples=100)
    assert (found.difference, found.bootstrap, found.permutation) == (0.0, 1.0, 1.0)


def test_the_order_of_systems_changes_signs_only() -> None:
    one, other = as_shares([(1, 1)] * 9 + [(0, 1)]), as_shares([(0, 1)] * 5 + [(1, 1)] * 5)
    found = difference(one, other, resamples=500)
    back = difference(other, one, resamples=500)
    assert found.difference == -back.difference
    assert (found.low, found.high) == pytest.approx((-back.high, -back.low))
    assert (found.bootstrap, found.permutation) == (back.bootstrap, back.permutation)


def test_corpus_scores_are_resampled_as_wholes_and_averaged_over_runs() -> None:
    """The mean of examples' F1 is not the F1 of their sums; runs are averaged after summing."""
    one = np.array([[[2.0, 2.0], [0.0, 1.0]], [[0.0, 8.0], [1.0, 1.0]]])
    found = difference(one, np.zeros_like(one), resamples=100)
    assert found.one == pytest.approx((2 / 10 + 1 / 2) / 2)


def test_several_sums_at_once_equal_one_at_a_time() -> None:
    """However scipy batches the resamples, the numbers are the same."""
    rng = np.random.default_rng(0)
    counts = class_counts(rng.integers(0, 3, (50, 2)), rng.integers(0, 3, (50, 2)), 3)
    sums = np.stack([counts[:25].sum(0), counts[25:].sum(0)])
    for metric in CLASS_METRICS.values():
        assert metric(sums)[1, 0] == pytest.approx(float(metric(sums[1, 0])))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_mcnemar_equals_the_binomial_spelt_out(pairs) -> None:
    one, other = ([pair[side] for pair in pairs] for side in (0, 1))
    found = mcnemar(one, other)
    n = found.only_one + found.only_other
    tail = sum(comb(n, k) for k in range(min(found.only_one, found.only_other) + 1)) / 2**n
    assert found.p == pytest.approx(min(1.0, 2 * tail))
    assert found.only_one == sum(a and not b for a, b in pairs)


def test_accuracy_agrees_with_scipys_own_test_of_means() -> None:
    rng = np.random.default_rng(2)
    one, other = rng.random((2, 12)) < np.array([[0.8], [0.5]])
    expected = stats.permutation_test(
        (one.astype(float), other.astype(float)),
        lambda x, y, axis: x.mean(axis) - y.mean(axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    shares = [as_shares([(right, 1) for right in side]) for side in (one, other)]
    assert difference(*shares, resamples=5000).permutation == pytest.approx(expected.pvalue)


@given(CLASSES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_class_metrics_equal_scikit_learns(pairs) -> None:
    gold, predicted = (np.array(side) for side in zip(*pairs, strict=True))
    sums = class_counts(gold, predicted, 3).sum(0)
    expected = f1_score(gold, predicted, labels=[0, 1, 2], average="macro", zero_division=0)
    assert float(accuracy(sums)) == pytest.approx((gold == predicted).mean())
    assert float(macro_f1(sums)) == pytest.approx(expected)
    assert float(mcc(sums)) == pytest.approx(matthews_corrcoef(gold, predicted), abs=1e-9)


def test_one_example_is_no_sample() -> None:
    with pytest.raises(SpecError, match="two or more"):
        difference(as_shares([(1, 1)]), as_shares([(0, 1)]))


def test_a_ratio_over_nothing_is_zero() -> None:
    assert ratio(np.zeros((2, 2))).tolist() == [0.0, 0.0]
