"""The contrast of subtrees against its equation, and what the released functions do instead."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from tests.trainer.contrasted import samples_of, slow_tree_loss, with_samples
from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.encoder import Encoder
from trainer.objectives.tree import TreeContrast
from trainer.options import TreeContrastOptions

WIDTH = 8
WAYS = ("tree", "tree(way=lr_sib, negatives=5)")


class OwnEncoder(Encoder):
    """Says how wide the states are."""

    width = WIDTH


def objective(**options) -> TreeContrast:
    return TreeContrast(TreeContrastOptions(**options), None, OwnEncoder(SyntaxConfig()))


def loss_of(batch: SyntaxBatch, states: torch.Tensor, **options) -> torch.Tensor:
    return objective(**options)(SyntaxEncoding(states), batch)


def states_of(batch: SyntaxBatch) -> torch.Tensor:
    return torch.randn(*batch.input_ids_BL.shape, WIDTH)


# make_batch is a function of its arguments alone.
@pytest.mark.slow
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(3, 13), min_size=4, max_size=4),
    st.sampled_from(WAYS),
    st.sampled_from(["in", "out"]),
    st.sampled_from(["masked", "released"]),
)
def test_the_loss_equals_its_slow_twin(make_batch, seed, sizes, way, tree_root, tree_topk) -> None:
    batch = with_samples(make_batch(tuple(sizes), roots=0.1, pad=seed % 3, seed=seed), way)
    states = states_of(batch)
    found = loss_of(batch, states, tree_root=tree_root, tree_topk=tree_topk)
    expected = slow_tree_loss(batch, states, tree_root, tree_topk)
    assert float(found) == pytest.approx(expected, abs=2e-5)


def given_samples(
    batch: SyntaxBatch, root: int, positive: list[int], negatives: list[list[int]]
) -> SyntaxBatch:
    """The batch with one sample, of its first example."""
    width = max(map(len, (positive, *negatives)))
    filled = [[*one, *[-1] * (width - len(one))] for one in (positive, *negatives)]
    extras = {
        "tree_offsets": torch.tensor([0, *[1] * len(batch)]),
        "tree_root": torch.tensor([root], dtype=torch.int32),
        "tree_positive": torch.tensor(filled[:1], dtype=torch.int32),
        "tree_negatives": torch.tensor([filled[1:]], dtype=torch.int32),
    }
    return replace(batch, extras=extras)


@pytest.mark.parametrize("tree_root", ["in", "out"])
def test_a_set_of_equals_is_as_near_as_can_be(batch, tree_root) -> None:
    """cos = 1, so that one negative of the opposite state leaves ln(1 + exp(-2 / 0.1))."""
    states = states_of(batch)
    states[0, [3, 4]] = states[0, 2].clone()
    states[0, 5] = -states[0, 2]
    given = given_samples(batch, 2, [3, 4], [[5]])
    loss = loss_of(given, states, tree_root=tree_root)
    assert float(loss) == pytest.approx(math.log1p(math.exp(-20)), abs=1e-6)


def test_the_root_is_left_out_of_its_own_set(batch) -> None:
    """Fails on the release of SynCLM, where the root draws every set towards itself."""
    states = states_of(batch)
    out, inside = (
        float(loss_of(given_samples(batch, 2, [2, 3], [[2, 4]]), states, tree_root=where))
        for where in ("out", "in")
    )
    cosines = [torch.cosine_similarity(states[0, 2], states[0, j], 0) for j in (3, 4)]
    expected = math.log1p(math.exp(float(cosines[1] - cosines[0]) / 0.1))
    assert out == pytest.approx(expected, rel=1e-4)
    assert inside != pytest.approx(expected, rel=1e-2)


def test_the_gradient_reaches_members_and_roots_alone(make_batch) -> None:
    batch = with_samples(make_batch((12, 30)), "tree(max_samples=1)")
    states = states_of(batch).requires_grad_()
    loss_of(batch, states).backward()
    allowed = torch.zeros_like(batch.attention_mask_BL)
    for example, root, positive, negatives in samples_of(
        batch, "tree", "root", "positive", "negatives"
    ):
        for members in (positive, *negatives):
            allowed[example, [root, *members]] = True
        assert states.grad[example, root].any()
        assert states.grad[example, positive].abs().sum(-1).all()
    assert allowed.any()
    assert not allowed.all()
    assert not states.grad[~allowed].any()


def test_padding_is_never_a_hard_negative(batch) -> None:
    """Fails on lr-sib: an empty cell, of similarity 0, takes the place of a real negative."""
    states = torch.zeros(*batch.input_ids_BL.shape, WIDTH)
    states[0, 1, 0] = 1.0
    for place, cosine in ((2, -0.3), (3, -0.2), (4, -0.4), (5, -0.6)):
        states[0, place, :2] = torch.tensor([cosine, math.sqrt(1 - cosine**2)])
    given = given_samples(batch, 1, [2], [[3], [4], [5]])
    # Another sample has more negatives, so that this one has empty cells.
    wide = {name: torch.cat([array, array]) for name, array in given.extras.items()}
    wide["tree_offsets"] = torch.tensor([0, 1, 2, *[2] * (len(batch) - 2)])
    empty = torch.full((2, 2, 1), -1, dtype=torch.int32)
    wide["tree_negatives"] = torch.cat([wide["tree_negatives"], empty], 1)
    wide["tree_negatives"][1] = 3
    given = replace(batch, extras=wide)

    def loss_of_first(**options) -> float:
        one = objective(**options)
        sets_STW = torch.cat([wide["tree_positive"][:, None], wide["tree_negatives"]], 1).long()
        products_BLL = states @ states.transpose(1, 2)
        roots_S = wide["tree_root"].long()
        found = one.similarities(products_BLL, torch.tensor([0, 1]), roots_S, sets_STW)
        return float(one.losses(*found)[0])

    expected = math.log1p(sum(math.exp((cosine + 0.3) / 0.1) for cosine in (-0.2, -0.4, -0.6)))
    assert loss_of_first() == pytest.approx(expected, rel=1e-4)
    # Both empty cells are counted in the place of the negatives of -0.4 and -0.6.
    displaced = math.log1p(sum(math.exp((cosine + 0.3) / 0.1) for cosine in (0.0, 0.0, -0.2)))
    assert loss_of_first(tree_topk="released") == pytest.approx(displaced, rel=1e-4)


def test_only_the_three_hardest_negatives_count(batch) -> None:
    states = states_of(batch)
    every = [[3], [4], [5], [6], [7]]
    cosines = {j: float(torch.cosine_similarity(states[0, 1], states[0, j], 0)) for (j,) in every}
    hardest = sorted(every, key=lambda one: -cosines[one[0]])[:3]
    losses = [
        float(loss_of(given_samples(batch, 1, [2], sets), states)) for sets in (every, hardest)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize("projection", [True, False])
def test_without_samples_the_loss_is_0_and_has_a_gradient(make_batch, projection) -> None:
    batch = with_samples(make_batch((3, 3)), "tree")
    assert not len(batch.extra("tree_root"))
    states = states_of(batch).requires_grad_()
    one = objective(projection=projection)
    loss = one(SyntaxEncoding(states), batch)
    loss.backward()
    assert loss.item() == 0
    assert not states.grad.any()
    assert all(weight.grad is not None for weight in one.parameters())


def test_the_projection_goes_before_the_products(make_batch) -> None:
    batch = with_samples(make_batch(), "tree")
    states, one = states_of(batch), objective(projection=True)
    projected = one.projection(states)
    found = one(SyntaxEncoding(states), batch).item()
    assert found == pytest.approx(slow_tree_loss(batch, projected), abs=1e-5)


def test_the_projection_begins_as_the_released_one(bert_config) -> None:
    """Also after transformers has given every layer its initial weights."""
    config = SyntaxConfig(
        encoder=bert_config.to_dict(),
        model={"name": "sla.v1", "use_syntax": False},
        classes={"label": ["a", "b"]},
        task={"name": "sequence_classification.v1", "label": "label"},
        objectives=[{"name": "tree.v1", "projection": True}],
    )
    (contrast,) = SyntaxModel(config).objectives
    first, gelu, norm, last = contrast.projection
    assert isinstance(gelu, nn.GELU)
    assert first.weight.shape == last.weight.shape == (16, 16)
    assert norm.bias.eq(1).all()
    assert norm.weight.eq(1).all()


def test_a_state_of_zeros_has_a_finite_gradient(make_batch) -> None:
    batch = with_samples(make_batch(), *WAYS[:1])
    states = torch.zeros(*batch.input_ids_BL.shape, WIDTH, requires_grad=True)
    loss_of(batch, states).backward()
    assert states.grad.isfinite().all()
