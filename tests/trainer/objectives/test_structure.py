from __future__ import annotations

from dataclasses import replace
from pkgutil import resolve_name

import pytest
import torch
from transformers import BertConfig

from syntax.trees.ud import DEPREL
from tests.trainer.bracketed import bracketed_batch
from tests.trainer.contrasted import rows_of, with_samples
from trainer.masking import MASKED_ARRAYS, PieceMasking
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.encoder import Encoder
from trainer.nn.piece_parser import PieceParser
from trainer.nn.positions import word_positions
from trainer.nn.probes import DepthProbe, DistanceProbe
from trainer.nn.stock import new_stock
from trainer.objectives import OBJECTIVES
from trainer.objectives.adversary_options import READ
from trainer.objectives.shown_options import HEADS, head_positions

WIDTH, RANK = 6, 3


def slow_distance_loss(probe: DistanceProbe, states, batch, power: int) -> float:
    """Ahmad et al. (2021): 1/n^2 of the summed |D^power - ||B(g_i - g_j)||^2|, by loops."""
    total = 0.0
    for row, size in enumerate(batch.lengths_B.tolist()):
        for i in range(size):
            for j in range(size):
                path = int(batch.distances()[row, i, j])
                if path != batch.unreachable:
                    difference = (states[row, i] - states[row, j]) @ probe.projection_GR
                    found = float((difference * difference).sum())
                    total += abs(found - path**power) / size**2
    return total / len(batch)


def slow_depth_loss(probe: DepthProbe, states, batch) -> float:
    total = 0.0
    for row, size in enumerate(batch.lengths_B.tolist()):
        for i in range(size):
            others = [j for j in range(size) if batch.distances()[row, i, j] != 255 and j != i]
            if others:
                found = float((states[row, i] @ probe.projection_GR).square().sum())
                total += abs(found - int(batch.depths()[row, i])) / size
    return total / len(batch)


@pytest.fixture
def forest():
    sentences = bracketed_batch([[5, 2], [4], [9]], pad=2)
    batch = with_samples(sentences, "phrase(probability=1)", "tree")
    keys = [f"example-{row}" for row in range(len(batch))]
    drawn = PieceMasking(mask_id=4, vocab_size=60).sample(batch.arrays, keys, 0, 0)
    masked = {name: torch.from_numpy(drawn[name]) for name in MASKED_ARRAYS}
    words = {READ: torch.from_numpy(word_positions(batch.arrays))}
    heads = {HEADS: torch.from_numpy(head_positions(batch.arrays))}
    return replace(batch, extras={**batch.extras, **masked, **words, **heads})


@pytest.fixture
def states(forest) -> torch.Tensor:
    return 5 * torch.randn(*forest.input_ids_BL.shape, WIDTH)


@torch.no_grad()
def test_the_published_target_is_the_squared_distance(forest, states) -> None:
    """Fails on the release, which compares a squared norm with the distance itself."""
    published = DistanceProbe(WIDTH, RANK)
    expected = slow_distance_loss(published, states, forest, power=2)
    assert float(published(states, forest)) == pytest.approx(expected, rel=1e-4)
    released = DistanceProbe(WIDTH, RANK, "as_released")
    released.load_state_dict(published.state_dict())
    assert float(released(states, forest)) != pytest.approx(expected, rel=1e-2)
    expected = slow_distance_loss(published, states, forest, power=1)
    assert float(released(states, forest)) == pytest.approx(expected, rel=1e-4)


@torch.no_grad()
def test_the_depth_loss_equals_its_slow_twin(forest, states) -> None:
    probe = DepthProbe(WIDTH, RANK)
    expected = slow_depth_loss(probe, states, forest)
    assert float(probe(states, forest)) == pytest.approx(expected, rel=1e-4)


OF_PIECES = [name for name, entry in OBJECTIVES.items() if not entry.options().reads_parses()]
"""The objectives that any batch is enough for; test_dependency.py holds those over words to it."""

CHOOSING = [name for name in OF_PIECES if "states" in OBJECTIVES[name].options.__dataclass_fields__]
"""The objectives with an option for the states that they read."""


OF_EXAMPLES = [name for name, entry in OBJECTIVES.items() if not entry.options().arrays()]
"""The objectives that are means over examples; others are means over samples."""

STOCK = BertConfig(vocab_size=60, hidden_size=WIDTH, num_attention_heads=2, num_hidden_layers=1)
CONFIG = SyntaxConfig(encoder=STOCK.to_dict())


class WideEncoder(Encoder):
    """Gives every kind of states, all of the same width."""

    stock = new_stock(STOCK)

    gives = frozenset({"hidden_states", "attentions"})
    width = syntax_width = WIDTH


def objective_of(name):
    """A new objective over the last states: from states and a batch to a loss."""
    entry = OBJECTIVES[name]
    built = resolve_name(entry.module)(entry.options(), CONFIG, WideEncoder(CONFIG)).eval()
    parser = PieceParser(WIDTH, len(DEPREL)).eval()
    for weight in parser.parameters():
        torch.nn.init.normal_(weight)

    def objective(states, batch):
        rows, scores = rows_of(states, batch), parser(states, batch.attention_mask_BL)
        return built(SyntaxEncoding(states, attention_rows=rows, tree_scores=scores), batch)

    return objective


@pytest.mark.parametrize("name", OF_PIECES)
@torch.no_grad()
def test_every_objective_is_blind_to_padding(name, forest, states) -> None:
    objective = objective_of(name)
    before = objective(states, forest)
    noise = states.masked_fill(~forest.attention_mask_BL[..., None], 1e3)
    assert torch.equal(objective(noise, forest), before)


@pytest.mark.parametrize("name", OF_EXAMPLES)
@torch.no_grad()
def test_every_objective_is_the_mean_over_examples(name, forest, states, take_row) -> None:
    objective = objective_of(name)
    alone = [take_row(forest, row) for row in range(len(forest))]
    each = [
        objective(states[row : row + 1, : example.input_ids_BL.shape[1]], example)
        for row, example in enumerate(alone)
    ]
    assert float(objective(states, forest)) == pytest.approx(float(sum(each)) / len(each))


@pytest.mark.parametrize("name", OF_PIECES)
def test_every_objective_teaches_the_states(name, forest, states) -> None:
    objective = objective_of(name)
    states.requires_grad_()
    objective(states, forest).backward()
    assert states.grad is not None
    assert states.grad.isfinite().all()
    assert states.grad.any()


@pytest.mark.parametrize("name", CHOOSING)
@pytest.mark.parametrize("states", ["last", "syntax", 1])
@torch.no_grad()
def test_every_objective_reads_the_states_that_its_options_name(name, states, forest) -> None:
    shape = (*forest.input_ids_BL.shape, WIDTH)
    layers = tuple(torch.randn(shape) for _ in range(3))
    entry = OBJECTIVES[name]
    built = resolve_name(entry.module)(entry.options(states=states), CONFIG, WideEncoder(CONFIG))
    encoding = SyntaxEncoding(layers[2], layers, syntax_states=torch.randn(shape))
    own = {"last": layers[2], "syntax": encoding.syntax_states, 1: layers[1]}
    needs = {"last": set(), "syntax": {"syntax_states"}, 1: {"hidden_states"}}
    assert built.needs == needs[states]
    same = SyntaxEncoding(own[states], (own[states],) * 3, syntax_states=own[states])
    assert torch.equal(built(encoding, forest), built(same, forest))


@torch.no_grad()
def test_half_precision_autocast_leaves_the_losses_exact(forest, states) -> None:
    probe = DistanceProbe(WIDTH, RANK)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(probe(states, forest), probe(states.clone(), forest))
    whole = probe(states, forest)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(probe(states, forest), whole)
