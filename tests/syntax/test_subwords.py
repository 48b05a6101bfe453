"""Subword policies: worked examples, twins over words, and what every policy must keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax.matrices import tree_matrices
from syntax.subwords import POLICIES, attach, broadcast, chain, copy_head, none

Texts = st.SearchStrategy[Any]

# "kids playing outside": kids and outside hang from playing, the root;
# pieces kids | play ##ing | out ##side ##s, with a white-space piece after the first word.
WORDS = np.array([0, -1, 1, 1, 2, 2, 2], np.int32)
HEADS = np.array([2, -2, -1, 2, 2, 4, 4], np.int32)
THEMSELVES = [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("policy", "parents", "source"),
    [
        (attach, [2, -2, -1, 2, 2, 4, 4], THEMSELVES),
        (broadcast, [2, -2, -1, 2, 2, 4, 4], [0, 1, 2, 2, 4, 4, 4]),
        (chain, [2, -2, -1, 2, 2, 4, 5], THEMSELVES),
        (copy_head, [2, -2, -1, -1, 2, 2, 2], THEMSELVES),
        (none, [2, -2, -1, -2, 2, -2, -2], THEMSELVES),
    ],
)
def test_a_sentence_worked_by_hand(policy: Any, parents: list[int], source: list[int]) -> None:
    tree = policy(HEADS, WORDS)
    assert tree.parents.tolist() == parents
    assert tree.source.tolist() == source


def pieces_of(text: Any, word: int) -> list[int]:
    return [piece for piece, shown in enumerate(text.words) if shown == word]


def attach_twin(text: Any, piece: int, later: bool) -> tuple[int, int]:
    return text.head(piece), piece


def broadcast_twin(text: Any, piece: int, later: bool) -> tuple[int, int]:
    return text.head(piece), text.first(text.words[piece]) if later else piece


def chain_twin(text: Any, piece: int, later: bool) -> tuple[int, int]:
    if not later:
        return text.head(piece), piece
    return max(other for other in pieces_of(text, text.words[piece]) if other < piece), piece


def copy_head_twin(text: Any, piece: int, later: bool) -> tuple[int, int]:
    return text.head(text.first(text.words[piece]) if later else piece), piece


def none_twin(text: Any, piece: int, later: bool) -> tuple[int, int]:
    return -2 if later else text.head(piece), piece


TWINS: dict[str, Callable[[Any, int, bool], tuple[int, int]]] = {
    "attach.v1": attach_twin,
    "broadcast.v1": broadcast_twin,
    "chain.v1": chain_twin,
    "copy_head.v1": copy_head_twin,
    "none.v1": none_twin,
}


def later_piece(text: Any, piece: int) -> bool:
    return text.words[piece] is not None and text.first(text.words[piece]) != piece


@pytest.mark.parametrize("name", TWINS)
@given(data=st.data())
def test_policies_equal_their_twins(name: str, data: st.DataObject, texts: Texts) -> None:
    text = data.draw(texts)
    features = text.features()
    expected = [
        TWINS[name](text, piece, later_piece(text, piece)) for piece in range(len(text.words))
    ]
    tree = POLICIES[name](features.head, features.word_ids)
    assert list(zip(tree.parents.tolist(), tree.source.tolist(), strict=True)) == expected


@pytest.mark.parametrize("name", POLICIES)
@given(data=st.data())
def test_every_policy_gives_a_forest_of_the_same_sentences(name, data, texts) -> None:
    text = data.draw(texts)
    features = text.features()
    before = features.head.copy(), features.word_ids.copy()
    parents, source = POLICIES[name](features.head, features.word_ids)
    np.testing.assert_array_equal(features.head, before[0])
    np.testing.assert_array_equal(features.word_ids, before[1])
    assert parents.dtype == source.dtype == np.int32
    tree_matrices(parents, source)  # raises on cycles and on foreign sources
    roots = parents == -1
    if name == "copy_head.v1":  # all pieces of a root word are roots
        roots &= np.array([not later_piece(text, piece) for piece in range(len(text.words))], bool)
    assert roots.sum() == len(set(text.sentences))
    without_word = features.word_ids < 0
    assert (parents[without_word] == -2).all()
    first = [not later_piece(text, piece) for piece in range(len(text.words))]
    np.testing.assert_array_equal(parents[first], features.head[first])


@pytest.mark.parametrize("name", POLICIES)
@given(data=st.data())
def test_segments_end_to_end_are_one_call(name: str, data: st.DataObject, texts: Texts) -> None:
    one, two = data.draw(texts).features(), data.draw(texts).features()
    shift = len(one)
    together = POLICIES[name](
        np.concatenate([one.head, np.where(two.head >= 0, two.head + shift, two.head)]),
        np.concatenate([one.word_ids, two.word_ids]),
    )
    for whole, first, second in zip(
        together,
        POLICIES[name](one.head, one.word_ids),
        POLICIES[name](two.head, two.word_ids),
        strict=True,
    ):
        moved = np.where(second >= 0, second + shift, second)
        np.testing.assert_array_equal(whole, np.concatenate([first, moved]))


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(
    ("heads", "words"),
    [([], []), ([-2], [-1]), ([-1], [0]), ([-2, -2], [-1, -1]), ([-1, 0], [0, 0])],
)
def test_policies_accept_texts_of_no_and_one_piece(name, heads, words) -> None:
    tree = POLICIES[name](np.array(heads, np.int32), np.array(words, np.int32))
    assert len(tree.parents) == len(tree.source) == len(heads)
