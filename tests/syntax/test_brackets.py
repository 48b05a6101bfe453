"""Brackets of dependency trees, against brackets that are built from the head outwards."""

from __future__ import annotations

import pytest
from hypothesis import given

from syntax.trees.brackets import brackets
from tests.syntax.parses import tree_heads


def below(heads: list[int], word: int) -> set[int]:
    """The word and all that hangs from it."""
    return {word}.union(*(below(heads, one) for one, head in enumerate(heads) if head == word))


def is_projective(heads: list[int]) -> bool:
    """Between a word and its head stand descendants of the head alone."""
    return all(
        set(range(min(word, head), max(word, head))) - {word} <= below(heads, head)
        for word, head in enumerate(heads)
        if head >= 0
    )


def built(heads: list[int], word: int) -> set[tuple[int, int, int]]:
    """The brackets of a subtree: the head takes what is on its right, then what is on its left."""
    found: set[tuple[int, int, int]] = set()
    low = high = word
    children = [one for one, head in enumerate(heads) if head == word]
    for child in [one for one in children if one > word]:
        new = max(below(heads, child))
        found |= {(low, new, high)} | built(heads, child)
        high = new
    for child in [one for one in children if one < word][::-1]:
        new = min(below(heads, child))
        found |= {(new, high, low - 1)} | built(heads, child)
        low = new
    return found


@given(tree_heads(most=9))
def test_brackets_are_those_built_from_the_head_outwards(heads) -> None:
    heads = [head - 1 for head in heads]
    found = brackets(heads)
    if not is_projective(heads):
        assert found is None
        return
    every = built(heads, heads.index(-1))
    assert len(every) == len(heads) - 1
    assert {tuple(row) for row in found.tolist()} == {
        (low, high, split) for low, high, split in every if high - low > 1
    }
    assert len(found) == len({tuple(row) for row in found.tolist()})


@pytest.mark.parametrize("heads", [[-1], [-1, 0]])
def test_short_sentences_have_nothing_to_divide(heads) -> None:
    assert brackets(heads).shape == (0, 3)
