"""Verdicts: of known distributions, of noise, and where they turn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.metrics.significance import over_runs
from trainer.reproduction.judgement import Design, Floor, every, is_gain, is_none, verdict
from trainer.reproduction.row import Figure
from trainer.reproduction.rows import noise, wolof

TRIALS = 2_000


def seeds(mean: float, deviation: float, n: int) -> list[Figure]:
    """Effects of trials whose seeds are drawn from a normal distribution."""
    drawn = np.random.default_rng(7).normal(mean, deviation, (TRIALS, n))
    return [Figure("effect", None, tuple(values)) for values in drawn.tolist()]


@pytest.mark.parametrize("n", [3, 5, 10])
def test_intervals_over_seeds_cover_the_true_mean_as_often_as_they_say(n: int) -> None:
    inside = [low < 1.0 < high for low, high in (one.interval for one in seeds(1.0, 2.0, n))]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.015)


def test_an_effect_that_is_not_there_is_seldom_found() -> None:
    """An interval of 95 % is above 0 in 2.5 % of the trials; else the row is undecided or fails."""
    answers = [is_gain(one.interval, effect=1.0) for one in seeds(0.0, 1.0, 5)]
    assert answers.count(True) / TRIALS == pytest.approx(0.025, abs=0.01)
    assert answers.count(False) > 0


def test_an_effect_of_the_size_that_a_design_names_is_found_as_often_as_it_says() -> None:
    design = Design(effect=1.0, spread=1.5)
    found = [is_gain(one.interval) for one in seeds(1.0, 1.5, design.seeds)]
    assert found.count(True) / TRIALS == pytest.approx(design.power(design.seeds), abs=0.03)
    assert design.power(design.seeds) >= 0.8 > design.power(design.seeds - 1)


def test_a_difference_that_is_not_there_is_within_the_margin_as_often_as_a_design_says() -> None:
    design = Design(effect=1.0, spread=1.0, absent=True)
    found = [is_none(one.interval, 1.0) for one in seeds(0.0, 1.0, design.seeds)]
    assert found.count(True) / TRIALS == pytest.approx(design.power(design.seeds), abs=0.03)
    assert design.power(design.seeds) >= 0.8 > design.power(design.seeds - 1)


def test_the_seeds_of_a_design_are_those_of_the_tables() -> None:
    # Cohen 1988: a paired t-test of d = .5, two sides, takes 34; the review counts 118 for CoLA.
    assert Design(effect=0.5, spread=1.0).seeds == 34
    assert Design(effect=1.7, spread=6.6).seeds == pytest.approx(118, abs=3)


@pytest.mark.slow
def test_intervals_over_runs_and_examples_cover_the_true_difference() -> None:
    """Each run has a difference of its own, on examples that all runs share."""
    draw, inside, of_examples = np.random.default_rng(3), 0, 0
    trials, N, R = 150, 120, 8
    for _ in range(trials):
        runs = draw.normal(0.0, 0.04, R)
        hard = draw.normal(0.5, 0.2, (N, 1))
        right = hard + runs + draw.normal(0.0, 0.2, (N, R))
        plain = hard + draw.normal(0.0, 0.2, (N, R))
        one, other = (np.stack([of, np.ones((N, R))], -1) for of in (right, plain))
        low, high = over_runs(one, other, resamples=400)
        inside += low < 0.0 < high
        # The same with the runs as they are knows nothing of other runs.
        gaps = (right - plain).mean(1)
        half = 1.96 * gaps.std(ddof=1) / N**0.5
        of_examples += abs(gaps.mean()) < half
    assert inside / trials > 0.88
    assert of_examples < inside - 0.1 * trials


@given(st.floats(-5, 5), st.floats(0, 5), st.floats(0, 3))
def test_a_verdict_turns_at_zero_and_at_the_effect_of_interest(
    low: float, width: float, effect: float
) -> None:
    interval = (low, low + width)
    answer = is_gain(interval, effect)
    if low > 0:
        assert answer is True
    elif low + width < effect:
        assert answer is False
    else:
        assert answer is None
    mirrored = (-interval[1], -interval[0])
    assert is_none(interval, effect) == is_none(mirrored, effect)


def test_a_claim_of_no_change_fails_outside_its_margin() -> None:
    assert is_none((-0.5, 0.5), 1.0) is True
    assert is_none((1.1, 2.0), 1.0) is is_none((-2.0, -1.1), 1.0) is False
    assert is_none((0.5, 1.5), 1.0) is is_none(None, 1.0) is is_gain(None) is None
    assert every([True, None]) is None
    assert every([True, None, False]) is False
    assert every([True, True]) is True


@pytest.mark.parametrize(
    ("kind", "holds", "small", "full"),
    [
        ("reproduction", True, "smaller trial: consistent", "reproduced"),
        ("reproduction", False, "smaller trial: inconsistent", "not reproduced"),
        ("reproduction", None, "smaller trial: undecided", "undecided"),
        ("sanity check", True, "smaller trial: passed", "passed"),
        ("own claim", False, "smaller trial: does not hold", "does not hold"),
    ],
)
def test_a_smaller_trial_is_only_consistent(kind, holds, small, full) -> None:
    assert verdict(kind, holds, (), reduced=True) == small
    assert verdict(kind, holds, (), reduced=False) == full
    missed = (Floor("plain", 90.0, 80), Floor("syntax", 59.0, 70))
    assert verdict(kind, holds, missed, reduced=True) == "smaller trial: not testable"
    assert str(missed[1]) == "syntax 59.0, below its floor of 70"


def test_a_row_whose_figures_are_noise_is_not_consistent() -> None:
    draw = np.random.default_rng(5)
    answers = []
    for _ in range(200):
        scores = {}
        for name in wolof.CONDITIONS:
            las = tuple(draw.normal(60, 1, 3))
            scores[name] = wolof.Scores(las, las, tuple(draw.normal(75, 1, 5)))
        answers.append(wolof.findings(scores, masked=40).holds)
    assert answers.count(True) < 0.06 * len(answers)
    noisy = [dict(zip((0.0, 0.5, 1.0), draw.normal(94, 3, 3), strict=True)) for _ in range(3)]
    assert noise.findings([94.0] * 3, noisy).holds is not True
