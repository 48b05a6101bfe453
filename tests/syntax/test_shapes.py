"""The shapes of trees, against the obvious way to find them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax.errors import InputError
from syntax.shapes import tree_shapes
from tests.syntax.parses import tree_heads


def ancestors(heads: list[int], word: int) -> list[int]:
    found = []
    while heads[word - 1]:
        word = heads[word - 1]
        found.append(word)
    return found


def obvious(heads: list[int]) -> tuple[int, int, int, int]:
    words = range(1, len(heads) + 1)
    arcs = [(word, heads[word - 1]) for word in words if heads[word - 1]]
    crossing = [
        (word, head)
        for word, head in arcs
        if any(
            head not in ancestors(heads, between)
            for between in range(min(word, head) + 1, max(word, head))
        )
    ]
    depth = max(len(ancestors(heads, word)) for word in words)
    return len(heads), depth, max(heads.count(word) for word in words), len(crossing)


@given(st.lists(tree_heads(), min_size=1, max_size=5))
def test_shapes_equal_brute_force(forest: list[list[int]]) -> None:
    starts = np.cumsum([0, *map(len, forest)])
    shapes = tree_shapes([head for heads in forest for head in heads], starts)
    columns = (shapes.length, shapes.depth, shapes.arity, shapes.crossing)
    found = list(zip(*(column.tolist() for column in columns), strict=True))
    assert found == [obvious(heads) for heads in forest]


def test_no_trees_have_no_shapes() -> None:
    assert tree_shapes([], [0]).length.tolist() == []


@pytest.mark.parametrize("heads", [[2, 1], [0, 3], [-1], [1]])
def test_heads_that_form_no_tree_are_refused(heads: list[int]) -> None:
    with pytest.raises(InputError, match="tree 1 is not a tree"):
        tree_shapes([0, *heads], [0, 1, 1 + len(heads)])
