"""The best trees, against the best of all trees."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from syntax.errors import InputError
from syntax.trees.mst import sentence_heads, spanning_tree


def is_tree(heads: tuple[int, ...], single_root: bool) -> bool:
    """Whether every word reaches ROOT, over one word or over any number."""
    for word in range(1, len(heads) + 1):
        node, seen = word, set()
        while node and node not in seen:
            seen.add(node)
            node = heads[node - 1]
        if node:
            return False
    return not single_root or heads.count(0) == 1


def total(scores: np.ndarray, heads: tuple[int, ...]) -> float:
    return float(sum(scores[word, head] for word, head in enumerate(heads)))


def best_total(scores: np.ndarray, single_root: bool) -> float:
    """By trying every head of every word."""
    every = product(range(len(scores) + 1), repeat=len(scores))
    return max(total(scores, heads) for heads in every if is_tree(heads, single_root))


def matrices(largest: int, values: st.SearchStrategy[float]) -> st.SearchStrategy[np.ndarray]:
    return st.integers(1, largest).flatmap(
        lambda words: arrays(np.float64, (words, words + 1), elements=values)
    )


@given(matrices(5, st.integers(-4, 4).map(float)), st.booleans())
@settings(max_examples=150, deadline=None)
def test_no_other_tree_has_a_higher_sum(scores: np.ndarray, single_root: bool) -> None:
    """Small whole numbers: many ties, many cycles, and sums without rounding."""
    heads = tuple(spanning_tree(scores, single_root).tolist())
    assert is_tree(heads, single_root)
    assert total(scores, heads) == best_total(scores, single_root)


@given(matrices(40, st.floats(-1e6, 1e6)), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_matrix_gives_a_tree_always_the_same(scores: np.ndarray, single_root: bool) -> None:
    heads = spanning_tree(scores, single_root)
    assert is_tree(tuple(heads.tolist()), single_root)
    assert np.array_equal(heads, spanning_tree(scores.copy(), single_root))


@given(matrices(12, st.floats(-10, 10)), st.randoms())
@settings(max_examples=60, deadline=None)
def test_a_tree_that_stands_out_is_found(scores: np.ndarray, random: object) -> None:
    """Whatever the other scores, the arcs of one tree get more than all others together."""
    order = list(range(1, len(scores) + 1))
    random.shuffle(order)  # type: ignore[attr-defined]
    heads = np.zeros(len(order), int)
    for place, word in enumerate(order[1:], 1):
        heads[word - 1] = order[random.randrange(place)]  # type: ignore[attr-defined]
    scores[np.arange(len(heads)), heads] += 1000
    assert spanning_tree(scores).tolist() == heads.tolist()


def test_no_words_make_no_tree() -> None:
    assert spanning_tree(np.empty((0, 1))).shape == (0,)


@pytest.mark.parametrize("shape", [(2, 2), (3,), (2, 4)])
def test_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"\(W, W \+ 1\)"):
        spanning_tree(np.zeros(shape))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="NaN or infinite"):
        spanning_tree([[value, 0.0]])


def test_a_masked_score_of_a_word_as_its_own_head_costs_no_precision() -> None:
    """Scores of roots that differ in the eighth digit, beside -1e9 on the diagonal."""
    size = 40
    scores = np.zeros((size, size + 1))
    scores[:, 0] = -5
    scores[3, 0] += 1e-7
    masked = scores.copy()
    np.fill_diagonal(masked[:, 1:], -1e9)
    assert spanning_tree(masked).tolist() == spanning_tree(scores).tolist()
    assert spanning_tree(masked)[3] == 0
    sentences = np.zeros(size, int)
    assert sentence_heads(masked, sentences).tolist() == spanning_tree(scores).tolist()
