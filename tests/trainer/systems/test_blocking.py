"""Attention blocked by tree distance, against a twin that walks the trees and loops over heads."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trainer.conftest import as_stream_batch, random_forest, walk
from trainer.batch import SyntaxBatch
from trainer.data import assembly_of, open_source
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.nn.attention import EAGER, SDPA
from trainer.recipes import RECIPES
from trainer.systems.blocking.encoder import near

N = 4


def encoder_of(stock, implementation=SDPA, **options):
    torch.manual_seed(2)
    config = SyntaxConfig(
        encoder=stock.to_dict(),
        attention=implementation,
        model={"name": "blocking.v1", **options},
        task={"name": "mlm.v1"},
    )
    return SyntaxModel(config).eval().encoder


def slow_edges(parents: list[int], i: int, j: int) -> float:
    """Edges between two nodes, by walking up from both to the first that they share."""
    up, down = walk(parents, i), walk(parents, j)
    shared = [node for node in up if node in down]
    return up.index(shared[0]) + down.index(shared[0]) if shared else math.inf


def slow_near(batch: SyntaxBatch, row: int, delta: int) -> np.ndarray:
    size = int(batch.lengths_B[row])
    parents = batch.parents_BL[row, :size].tolist()
    special = batch.special_tokens_mask_BL[row].tolist()
    found = np.zeros((size, size), bool)
    for i in range(size):
        for j in range(size):
            found[i, j] = special[i] or special[j] or slow_edges(parents, i, j) <= delta
    return found


@given(
    st.lists(st.integers(3, 12), min_size=1, max_size=3),
    st.sampled_from([0.0, 0.4]),
    st.integers(0, 5),
    st.integers(0, 2**16),
)
@settings(max_examples=40, deadline=None)
def test_near_is_what_walks_along_the_trees_find(sizes, roots, delta, seed) -> None:
    rng = np.random.default_rng(seed)
    forests = [random_forest(rng, size, roots) for size in sizes]
    batch = SyntaxBatch.from_numpy(as_stream_batch(forests, rng, 2), labels=("label",))
    found = near(batch, delta)
    for row, size in enumerate(sizes):
        assert np.array_equal(found[row, :size, :size].numpy(), slow_near(batch, row, delta))
        assert not found[row, :size, size:].any()


@torch.no_grad()
def test_every_head_of_every_layer_is_that_of_a_slow_twin(bert_config, make_batch) -> None:
    batch, delta = make_batch(roots=0.3, pad=2), 1
    encoder = encoder_of(bert_config, EAGER, attention="eager", max_distance=delta)
    encoding = encoder(batch, output_hidden_states=True, output_attentions=True)
    for number, layer in enumerate(encoder.stock.encoder.layer):
        own, states = layer.attention.self, encoding.hidden_states[number].double()
        query, key = (
            (states @ one.weight.double().T + one.bias.double()).unflatten(-1, (N, -1))
            for one in (own.query, own.key)
        )
        for row, size in enumerate(batch.lengths_B.tolist()):
            allowed = slow_near(batch, row, delta)
            for head in range(N):
                for i in range(size):
                    seen = np.flatnonzero(allowed[i])
                    scores = [float(query[row, i, head] @ key[row, j, head]) / 2 for j in seen]
                    expected = np.zeros(batch.input_ids_BL.shape[1])
                    expected[seen] = np.exp(scores) / np.exp(scores).sum()
                    found = encoding.attentions[number][row, head, i].numpy()
                    assert np.allclose(found, expected, atol=1e-6)


@torch.no_grad()
def test_fused_and_spelt_out_attention_agree(encoder_config, make_batch) -> None:
    batch = make_batch(pad=2)
    fused, spelt = (
        encoder_of(encoder_config, attention, max_distance=1)(batch).last_hidden_state
        for attention in (SDPA, EAGER)
    )
    real = batch.attention_mask_BL
    assert torch.allclose(fused[real], spelt[real], atol=1e-5)
    assert fused.isfinite().all()
    stock = encoder_of(encoder_config, use_syntax=False)(batch).last_hidden_state
    assert not torch.allclose(fused[real], stock[real], atol=1e-3)
    far = encoder_of(encoder_config, max_distance=12)(batch).last_hidden_state
    assert torch.allclose(far[real], stock[real], atol=1e-5), "far enough, nothing is blocked"


def test_pieces_of_a_word_see_each_other_and_what_it_sees(store, small_recipe) -> None:
    """Fails on trees of pieces, in which the later piece of a leaf is one edge further away."""
    data = RECIPES["blocking-pawsx"]().data
    recipe = small_recipe(
        "model.name=blocking.v1", f"data.policy={data.policy}", "evaluation_batch_size=48"
    )
    stream = open_source(store, recipe, "dev", "en").evaluation_stream(recipe)
    assert assembly_of(recipe).matrices == ("distance",)
    batch, several = SyntaxBatch.from_numpy(next(iter(stream)), labels={}), 0
    found = near(batch, 1)
    for row, (words, segments) in enumerate(
        zip(batch.arrays["word_ids"], batch.arrays["segment_ids"], strict=True)
    ):
        for place in np.flatnonzero(words[1:] >= 0) + 1:
            if (words[place], segments[place]) == (words[place - 1], segments[place - 1]):
                assert torch.equal(found[row, place], found[row, place - 1])
                assert found[row, place, place - 1]
                several += 1
    assert several


@pytest.mark.parametrize("name", ["blocking-pawsx", "blocking-wikiann"])
def test_recipes_measure_distances_of_words(name) -> None:
    recipe = RECIPES[name]()
    assert recipe.data.policy == "broadcast"
    assert recipe.objectives == ()
    assert recipe.model.max_distance == RECIPES[name.partition("-")[2]]().model.max_distance
