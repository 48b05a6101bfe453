"""Trees as steps of a stack, and back: random trees, and those of a real treebank."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax.errors import InputError
from syntax.trees.conllu import parse_conllu
from syntax.trees.pointers import heads_of_steps, pointer_steps


@st.composite
def trees(draw) -> list[int]:
    """Random heads, several roots and crossing arcs among them."""
    size = draw(st.integers(1, 15))
    order = draw(st.permutations(range(1, size + 1)))
    heads = [0] * size
    for number, word in enumerate(order):
        heads[word - 1] = draw(st.sampled_from([0, *order[:number]]))
    return heads


def walk(heads: list[int], node: int = 0) -> list[int]:
    """The steps by their definition: each child with its own steps, then the node itself."""
    found: list[int] = []
    for child in (word for word, head in enumerate(heads, 1) if head == node):
        found += [child, *walk(heads, child)]
    return [*found, node]


@given(trees())
def test_a_tree_comes_back_from_its_steps(heads) -> None:
    steps = pointer_steps(heads)
    assert steps.targets.tolist() == walk(heads)
    assert heads_of_steps(steps.targets).tolist() == heads
    pushed = steps.targets != steps.tops
    assert np.asarray(heads)[steps.targets[pushed] - 1].tolist() == steps.tops[pushed].tolist()


def is_projective(heads: list[int]) -> bool:
    spans = [(min(word, head), max(word, head)) for word, head in enumerate(heads, 1)]
    return not any(a < c < b < d for a, b in spans for c, d in spans)


@pytest.mark.slow
def test_a_thousand_trees_of_a_treebank_come_back(data_dir) -> None:
    text = (data_dir / "treebanks/UD_English-EWT/en_ewt-ud-train.conllu").read_text("utf-8")
    sentences = list(parse_conllu("\n\n".join(text.split("\n\n")[:1000]) + "\n\n"))
    assert len(sentences) == 1000
    crossing = 0
    for sentence in sentences:
        heads = [word.head for word in sentence.words]
        steps = pointer_steps(heads)
        assert heads_of_steps(steps.targets).tolist() == heads
        crossing += not is_projective(heads)
    assert crossing > 5


@pytest.mark.parametrize("heads", [[2, 1], [1], [3]])
def test_what_is_no_tree_has_no_steps(heads) -> None:
    with pytest.raises(InputError):
        pointer_steps(heads)


@pytest.mark.parametrize("targets", [[1, 1], [1, 0, 0], [1, 2, 1, 2, 0], [1, 1, 2, 2, 1]])
def test_steps_that_build_no_tree_are_refused(targets) -> None:
    with pytest.raises(InputError):
        heads_of_steps(targets)
