"""The row of TreeReg: its bigram model and its verdict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.reproduction.rows import tree_reg

_PIECES = 5
_PAIR = st.tuples(*[st.integers(0, _PIECES - 1)] * 2)


@given(st.lists(_PAIR, min_size=1), st.integers(0, _PIECES - 1))
def test_chances_of_the_next_piece_sum_to_one(pairs: list[tuple[int, int]], before: int) -> None:
    train = np.array([*pairs, (_PIECES - 1, _PIECES - 1)])
    chances = [
        1 / tree_reg.bigram_perplexity(train, np.array([(before, after)]))
        for after in range(_PIECES)
    ]
    assert sum(chances) == pytest.approx(1)


def test_a_pair_that_always_occurs_is_expected() -> None:
    train = np.array([(0, 1), (1, 0)] * 50)
    likely, unlikely = (
        tree_reg.bigram_perplexity(train, np.array([pair])) for pair in ((0, 1), (0, 0))
    )
    assert likely == pytest.approx(1 / (49.25 / 50 + 0.75 / 50 * 51 / 102))
    assert unlikely == pytest.approx(1 / (0.75 / 50 * 51 / 102))


@pytest.mark.parametrize(
    ("ours", "holds"),
    [((90.0, 91.0, 89.0), True), ((101.0, 100.0, 101.0), False), ((97.0, 103.0, 96.0), None)],
    ids=["lower", "no-lower", "undecided"],
)
def test_the_verdict_is_of_the_perplexity_of_other_text(
    ours: tuple[float, ...], holds: bool | None
) -> None:
    one = {"treereg": [*ours], "plain": [100.0] * 3}
    same = {"treereg": [50.0] * 3, "plain": [50.0] * 3}
    found = tree_reg.findings({"PUD": one, tree_reg.OWN: same}, bigram=80)
    assert found.holds is holds
    assert found.figures[0].values == pytest.approx(tuple(100 - value for value in ours))
    assert not found.floors[0].is_missed
    assert tree_reg.findings({"PUD": one, tree_reg.OWN: same}, bigram=49).floors[0].is_missed
