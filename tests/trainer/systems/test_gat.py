from __future__ import annotations

import math

import pytest
import torch

from syntax.trees.ud import UPOS
from trainer.batch import tag_ids
from trainer.systems.syntax_mbert.gat import (
    AdditiveGraphAttention,
    DotProductGraphAttention,
    allowed,
)

WIDTH, HEADS, SIZE = 6, 2, 4


def head_rows(weight: torch.Tensor, head: int) -> torch.Tensor:
    return weight[head * SIZE : (head + 1) * SIZE]


def slow_step(states, neighbours, score, value) -> torch.Tensor:
    """One head by loops: softmax of ``score(i, j)`` over the neighbours of i, mean of values."""
    output = torch.zeros(len(states), SIZE)
    for i in range(len(states)):
        near = [j for j in range(len(states)) if neighbours[i][j]]
        total = sum(math.exp(score(i, j)) for j in near)
        for j in near:
            output[i] += math.exp(score(i, j)) / total * value(j)
    return output


def slow_published(layer: DotProductGraphAttention, states, neighbours) -> torch.Tensor:
    heads = []
    for head in range(HEADS):
        nodes = [head_rows(layer.node_GF, head) @ state for state in states]
        values = [head_rows(layer.value_GF, head) @ state for state in states]
        score = lambda i, j, t=nodes: float(t[i] @ t[j]) / math.sqrt(SIZE)  # noqa: E731
        heads.append(slow_step(states, neighbours, score, values.__getitem__))
    return torch.cat(heads, 1)


def slow_released(layer: AdditiveGraphAttention, states, neighbours) -> torch.Tensor:
    heads = []
    for head in range(HEADS):
        nodes = [head_rows(layer.node_GF, head) @ state for state in states]
        a1, a2 = layer.source_ND[head], layer.target_ND[head]

        def score(i, j, w=nodes, a1=a1, a2=a2) -> float:
            raw = float(a1 @ w[i] + a2 @ w[j])
            return raw if raw > 0 else 0.2 * raw

        heads.append(slow_step(states, neighbours, score, nodes.__getitem__))
    return torch.cat(heads, 1)


TWINS = [(DotProductGraphAttention, slow_published), (AdditiveGraphAttention, slow_released)]


@pytest.mark.parametrize(("kind", "twin"), TWINS)
@torch.no_grad()
def test_a_layer_equals_its_slow_twin(kind, twin, make_batch) -> None:
    batch = make_batch(roots=0.2, pad=2)
    layer = kind(WIDTH, HEADS, SIZE, dropout=0.1).eval()
    states = torch.randn(*batch.input_ids_BL.shape, WIDTH)
    near = allowed(batch, 2)
    found = layer(states, near)
    for row in range(len(batch)):
        expected = twin(layer, states[row], near[row].tolist())
        assert (found[row] - expected).abs().max() < 1e-5


@torch.no_grad()
def test_published_queries_and_keys_share_one_projection_released_ones_do_not(batch) -> None:
    """The released layer fails the published twin whatever its weights: its scores differ."""
    states = torch.randn(*batch.input_ids_BL.shape, WIDTH)
    near = allowed(batch, 4)
    released = AdditiveGraphAttention(WIDTH, HEADS, SIZE, dropout=0.0).eval()
    published = DotProductGraphAttention(WIDTH, HEADS, SIZE, dropout=0.0).eval()
    published.node_GF.copy_(released.node_GF)
    published.value_GF.copy_(released.node_GF)
    expected = slow_published(published, states[0], near[0].tolist())
    assert (published(states, near)[0] - expected).abs().max() < 1e-5
    assert (released(states, near)[0] - expected).abs().max() > 1e-2


@pytest.mark.parametrize(("kind", "_twin"), TWINS)
@torch.no_grad()
def test_nodes_beyond_the_distance_have_no_influence(kind, _twin, make_batch) -> None:
    batch = make_batch(sizes=(12,))
    layer = kind(WIDTH, HEADS, SIZE, dropout=0.0).eval()
    states = torch.randn(1, 12, WIDTH)
    changed = states.clone()
    changed[0, 5] += 1.0
    moved = (layer(states, allowed(batch, 1)) != layer(changed, allowed(batch, 1))).any(-1)[0]
    assert torch.equal(moved, batch.distances()[0, 5] <= 1)


@pytest.mark.parametrize(("kind", "_twin"), TWINS)
def test_a_row_without_any_allowed_node_is_zero_and_its_gradient_finite(kind, _twin) -> None:
    layer = kind(WIDTH, HEADS, SIZE, dropout=0.0)
    states = torch.randn(1, 3, WIDTH, requires_grad=True)
    near = torch.tensor([[[True, True, False], [True, True, False], [False, False, False]]])
    output = layer(states, near)
    output.square().sum().backward()
    assert not output[0, 2].any()
    assert states.grad is not None
    assert states.grad.isfinite().all()
    assert not states.grad[0, 2].any()


def test_specials_and_untagged_pieces_have_tags_of_their_own(make_batch) -> None:
    batch = make_batch(sizes=(6,), pad=1)
    upos = batch.upos_BL.clone()
    upos[0, 2], upos[0, 3] = 7, 0
    ids = tag_ids(batch, upos, len(UPOS))[0].tolist()
    assert ids[0] == len(UPOS)
    assert ids[2:4] == [7, len(UPOS) + 2]
    assert ids[5:] == [len(UPOS) + 1, 0]
