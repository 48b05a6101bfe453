"""A dependency tree is one tree, or it is not made."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax import DependencyTree
from syntax.errors import (
    CycleError,
    EmptyTreeError,
    HeadOutOfRangeError,
    InputError,
    MissingHeadError,
    MultipleRootsError,
    NoRootError,
    TreeError,
)
from tests.syntax.parses import tree_heads


def tree(heads: list[int | None]) -> DependencyTree:
    return DependencyTree(heads, ["dep"] * len(heads))


def is_tree(heads: list[int]) -> bool:
    """The slow, obvious twin: one root, and every word climbs to it in at most n steps."""
    size = len(heads)
    if heads.count(0) != 1 or any(not 0 <= head <= size for head in heads):
        return False
    for word in range(1, size + 1):
        for _ in range(size):
            word = heads[word - 1] if word else 0
        if word:
            return False
    return True


class TestValid:
    def test_parents_are_heads_counted_from_zero(self) -> None:
        made = DependencyTree([2, 0, 2], ["nsubj", "root", "obj"])
        assert made.parents.tolist() == [1, -1, 1]
        assert made.parents.dtype == np.int32
        assert (len(made), made.root) == (3, 1)
        assert made.deprels == ("nsubj", "root", "obj")

    def test_a_chain_of_thousands_is_a_tree(self) -> None:
        assert tree(list(range(5000))).root == 0

    def test_numpy_heads_become_plain_integers(self) -> None:
        made = tree(list(np.array([2, 0])))
        assert made == tree([2, 0])
        assert type(made.heads[0]) is int

    def test_trees_are_values(self) -> None:
        assert hash(tree([2, 0])) == hash(tree([2, 0]))
        assert pickle.loads(pickle.dumps(tree([2, 0]))) == tree([2, 0])


class TestInvalid:
    @pytest.mark.parametrize(
        ("heads", "error", "message"),
        [
            ([], EmptyTreeError, "no words"),
            ([2, 1], NoRootError, "none of the 2 words"),
            ([0, 0, 1], MultipleRootsError, r"words \[1, 2\]"),
            ([0, 3, 2], CycleError, r"words \[2, 3\] form a cycle"),
            ([0, 2], CycleError, r"words \[2\] form a cycle"),
            ([0, 3, 4, 3], CycleError, r"words \[3, 4\] form a cycle"),
            ([0, 3], HeadOutOfRangeError, "word 2 has head 3; heads lie between 0"),
            ([0, -1], HeadOutOfRangeError, "word 2 has head -1"),
            ([0, None], MissingHeadError, "word 2 has no head"),
        ],
    )
    def test_each_fault_has_its_error(self, heads, error, message) -> None:
        with pytest.raises(error, match=message):
            tree(heads)

    def test_every_word_needs_a_relation(self) -> None:
        with pytest.raises(InputError, match="there are 2 heads and 1 deprels"):
            DependencyTree([2, 0], ["root"])


@given(tree_heads())
def test_every_tree_is_accepted(heads: list[int]) -> None:
    assert is_tree(heads)
    assert list(tree(list(heads)).heads) == heads


@given(
    st.integers(1, 6).flatmap(lambda n: st.lists(st.integers(-1, n + 1), min_size=n, max_size=n))
)
def test_exactly_the_trees_are_accepted(heads: list[int]) -> None:
    if is_tree(heads):
        tree(list(heads))
    else:
        with pytest.raises(TreeError):
            tree(list(heads))
