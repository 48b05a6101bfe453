"""The CRF over binary trees, against all trees of a few words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from trainer.nn.span_parser import SpanParser, best_trees, inside, span_loss

Stretches = frozenset[tuple[int, int]]


def all_trees(start: int, end: int) -> Iterator[Stretches]:
    """Every binary tree over these words, as its stretches."""
    if end - start == 1:
        yield frozenset([(start, end)])
    for middle in range(start + 1, end):
        for left in all_trees(start, middle):
            for right in all_trees(middle, end):
                yield left | right | {(start, end)}


def drawn(seed: int, rows: int, words: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, words + 1, words + 1, generator=generator, dtype=torch.float64)


def total(scores_FF: Tensor, tree: Stretches) -> Tensor:
    return torch.stack([scores_FF[start, end] for start, end in sorted(tree)]).sum()


@given(st.integers(0, 99), st.lists(st.integers(1, 6), min_size=1, max_size=3))
def test_all_is_as_counted_over_all_trees(seed: int, lengths: list[int]) -> None:
    scores_BFF = drawn(seed, len(lengths), max(lengths)).requires_grad_()
    lengths_B = torch.tensor(lengths)
    found_B = inside(scores_BFF, lengths_B)
    (marginals_BFF,) = torch.autograd.grad(found_B.sum(), scores_BFF)
    best = best_trees(scores_BFF.detach(), lengths_B)
    for row, words in enumerate(lengths):
        trees = [*all_trees(0, words)]
        scores = torch.stack([total(scores_BFF[row], tree) for tree in trees])
        assert found_B[row].item() == pytest.approx(scores.logsumexp(0).item())
        expected_FF = torch.zeros_like(marginals_BFF[row])
        for tree, share in zip(trees, scores.softmax(0).tolist(), strict=True):
            for start, end in tree:
                expected_FF[start, end] += share
        torch.testing.assert_close(marginals_BFF[row], expected_FF)
        assert frozenset(best[row]) == trees[int(scores.argmax())]


def test_trees_are_counted() -> None:
    """The numbers of binary trees are Catalan's."""
    counts = inside(torch.zeros(7, 8, 8), torch.arange(1, 8)).exp()
    assert counts.tolist() == pytest.approx([1, 1, 2, 5, 14, 42, 132], rel=1e-5)


def test_a_sequence_without_words_has_no_tree() -> None:
    assert best_trees(drawn(0, 2, 2), torch.tensor([0, 2]))[0] == []


@pytest.fixture
def parser() -> SpanParser:
    torch.manual_seed(5)
    return SpanParser(6, span=5, label=4, labels=3, dropout=0.0)


GOLD = torch.tensor([[[0, 2, 1], [0, 1, 0], [1, 2, -100]], [[0, 1, 2], *[[-100] * 3] * 2]])


def test_the_loss_is_that_of_its_definition(parser) -> None:
    real_BW = torch.tensor([[True, True], [True, False]])
    states_BFD = parser.boundaries(torch.randn(2, 2, 6), real_BW)
    scores_BFF, lengths_B = parser(states_BFD), real_BW.sum(1)
    loss = span_loss(parser, states_BFD, scores_BFF, lengths_B, GOLD)
    trees, labels = 0.0, []
    for row, words in enumerate((2, 1)):
        gold = [one for one in GOLD[row].tolist() if one[0] >= 0]
        right = total(scores_BFF[row], frozenset((start, end) for start, end, _ in gold))
        every = torch.stack([total(scores_BFF[row], tree) for tree in all_trees(0, words)])
        trees += (every.logsumexp(0) - right).item()
        for start, end, label in gold:
            ends = (torch.tensor([[at]]) for at in (start, end))
            scores_C = parser.label(states_BFD[row : row + 1], *ends)[0, 0]
            labels += [] if label < 0 else [-scores_C.log_softmax(0)[label].item()]
    assert loss.item() == pytest.approx(trees / 3 + sum(labels) / len(labels), rel=1e-4)
    nothing = torch.full_like(GOLD, -100)
    assert span_loss(parser, states_BFD, scores_BFF, lengths_B, nothing).item() == 0


def test_boundaries_have_the_word_before_and_the_word_behind(parser) -> None:
    states_BWD = torch.arange(24.0).view(2, 2, 6)
    real_BW = torch.tensor([[True, True], [True, False]])
    found_BFD = parser.boundaries(states_BWD, real_BW)
    begin_D, end_D = parser.edges_2D.detach()
    for row, words in enumerate((2, 1)):
        for at in range(words + 1):
            before = begin_D if at == 0 else states_BWD[row, at - 1]
            behind = end_D if at == words else states_BWD[row, at]
            assert found_BFD[row, at].tolist() == [*before[:3].tolist(), *behind[3:].tolist()]


def test_padding_changes_nothing(parser) -> None:
    states_BWD = torch.randn(1, 5, 6)
    real_BW = torch.arange(5)[None] < 3
    long_BFF = parser(parser.boundaries(states_BWD, real_BW))
    short_BFF = parser(parser.boundaries(states_BWD[:, :3], real_BW[:, :3]))
    lengths_B = torch.tensor([3])
    assert inside(long_BFF, lengths_B).item() == pytest.approx(inside(short_BFF, lengths_B).item())
    assert best_trees(long_BFF, lengths_B) == best_trees(short_BFF, lengths_B)
