"""Noise keeps every sentence a tree, and changes what it was asked to change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax import DependencyTree, Parse
from syntax.errors import SpecError
from syntax.trees.noise import Noise, NoiseKind, noisy_parse
from tests.syntax.parses import parse_of, tree_heads

KINDS: list[tuple[NoiseKind, ...]] = [("heads",), ("labels",), ("heads", "labels")]


def random_heads(size: int, draw: np.random.Generator) -> list[int]:
    """A random tree: each word but the first, in random order, hangs from one before it."""
    order = draw.permutation(size) + 1
    heads = [0] * size
    for at in range(1, size):
        heads[order[at] - 1] = int(order[draw.integers(at)])
    return heads


def changes(before: Sequence[object], after: Sequence[object]) -> int:
    return sum(old != new for old, new in zip(before, after, strict=True))


def parse_with(*trees: list[int]) -> Parse:
    """A parse of one-letter words."""
    deprel = ["nmod:poss" if head else "root" for tree in trees for head in tree]
    size = len(deprel)
    spans = [(at, at + 1) for at in range(size)]
    return parse_of("a" * size, spans, trees, lemma=["a"] * size, deprel=deprel)


parses = st.lists(tree_heads(most=9), min_size=1, max_size=4).map(lambda trees: parse_with(*trees))
noises = st.builds(Noise, st.floats(0, 1), st.sampled_from(KINDS), st.integers(0, 5))


@given(parses, noises, st.text(max_size=5))
def test_noisy_sentences_are_trees_with_one_root_relation(parse, noise, name) -> None:
    noisy = noisy_parse(parse, noise, name)
    for first, end in noisy.word_ranges():
        relations = [str(relation) for relation in noisy.deprel[first:end]]
        tree = DependencyTree(noisy.head[first:end], relations)
        assert [word for word, relation in enumerate(relations) if relation == "root"] == [
            tree.root
        ]


@given(parses, noises, st.text(max_size=5))
def test_only_heads_and_relations_change_and_not_more_of_them_than_asked(
    parse: Parse, noise: Noise, name: str
) -> None:
    noisy = noisy_parse(parse, noise, name)
    for column in set(Parse.__dataclass_fields__) - {"head", "deprel"}:
        assert getattr(noisy, column) == getattr(parse, column)
    for first, end in parse.word_ranges():
        moved = changes(parse.head[first:end], noisy.head[first:end])
        most = int(noise.share * (end - first)) + 1
        assert moved <= (most if "heads" in noise.kinds else 0)
        if noise.kinds == ("heads",):
            relabelled = changes(parse.deprel[first:end], noisy.deprel[first:end])
            assert relabelled in (0, 2)  # 2: another word is the root


@given(parses, noises)
def test_noise_depends_on_seed_and_name_only(parse: Parse, noise: Noise) -> None:
    assert noisy_parse(parse, noise, "a") == noisy_parse(parse, noise, "a")
    assert noisy_parse(parse, Noise(0.0, noise.kinds), "a") == parse


@pytest.mark.parametrize("share", [0.05, 0.1, 0.5, 1.0])
def test_the_share_holds_over_many_sentences(share: float) -> None:
    draw = np.random.default_rng(7)
    heads = labels = words = others = 0
    for number in range(400):
        parse = parse_with(random_heads(12, draw))
        noisy = noisy_parse(parse, Noise(share, ("heads",)), str(number))
        heads += changes(parse.head, noisy.head)
        relabelled = noisy_parse(parse, Noise(share, ("labels",)), str(number))
        labels += changes(parse.deprel, relabelled.deprel)
        words, others = words + 12, others + 11
        assert relabelled.head == parse.head
    assert heads / words == pytest.approx(share, rel=0.08)
    assert labels / others == pytest.approx(share, rel=0.08)


@given(parses, st.integers(0, 5), st.text(max_size=5))
def test_a_share_of_one_leaves_no_head_where_it_was(parse: Parse, seed: int, name: str) -> None:
    noisy = noisy_parse(parse, Noise(1.0, seed=seed), name)
    for first, end in parse.word_ranges():
        if end - first > 1:
            assert changes(parse.head[first:end], noisy.head[first:end]) == end - first


def test_each_valid_head_is_as_likely_as_the_others() -> None:
    chain = parse_with([0, 1, 2, 3])
    found = Counter(tuple(noisy_parse(chain, Noise(0.25), str(n)).head) for n in range(4000))
    # One word is moved. The root alone moves nothing, so another word is drawn in its place:
    # word 2 has no other place, word 3 has one, word 4 has two.
    assert set(found) == {(0, 1, 2, 3), (0, 1, 1, 3), (0, 1, 2, 1), (0, 1, 2, 2)}
    for heads in ((0, 1, 2, 3), (0, 1, 1, 3)):
        assert found[heads] == pytest.approx(4000 / 3, rel=0.1)
    for heads in ((0, 1, 2, 1), (0, 1, 2, 2)):
        assert found[heads] == pytest.approx(4000 / 6, rel=0.15)


def test_other_seeds_and_names_draw_other_words() -> None:
    parse = parse_with(random_heads(30, np.random.default_rng(1)))
    drawn = {
        tuple(noisy_parse(parse, Noise(0.2, seed=seed), name).head)
        for seed in range(3)
        for name in "abc"
    }
    assert len(drawn) == 9


@pytest.mark.parametrize(
    ("options", "message"),
    [((-0.1,), "0 to 1"), ((1.1,), "0 to 1"), ((float("nan"),), "0 to 1"), ((0.1, ()), "heads, l")],
)
def test_noise_of_no_share_or_kind_is_refused(options: tuple[Any, ...], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Noise(*options)
