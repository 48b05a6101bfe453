"""Syntax-BERT: masks by walking up trees, the mix of sub-networks by loops, a run."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from syntax.errors import SpecError
from tests.trainer.conftest import walk
from trainer.loop import train
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.nn.attention import EAGER, SDPA
from trainer.options import SyntaxMasksOptions
from trainer.systems.syntax_masks.encoder import syntax_masks

N = 4


def slow_masks(parents: list[int], texts: list[int], options: SyntaxMasksOptions) -> np.ndarray:
    """As the release's loops find them: (J, L, L), bool, before empty rows are filled."""
    size, most = len(parents), options.distances
    found = np.zeros((3 * most + options.pairs, size, size), bool)
    for i in range(size):
        for j in range(size):
            up, down = walk(parents, i), walk(parents, j)
            if j in up[1 : most + 1]:
                found[up.index(j) - 1, i, j] = True
            if i in down[1 : most + 1]:
                found[most + down.index(i) - 1, i, j] = True
            shared = [node for node in up if node in down]
            if shared and j not in up and i not in down:
                edges = up.index(shared[0]) + down.index(shared[0])
                if edges - 2 < most:
                    found[2 * most + edges - 2, i, j] = True
            if options.pairs and min(texts[i], texts[j]) >= 0:
                found[-1, i, j] = i == j or texts[i] != texts[j]
    return found


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("distances", [1, 3])
def test_masks_are_those_of_a_walk_up_the_tree(make_batch, distances, pairs) -> None:
    options = SyntaxMasksOptions(distances=distances, pairs=pairs)
    batch = make_batch((14, 6, 11), roots=0.2, pad=2)
    texts = torch.full(batch.input_ids_BL.shape, -1)
    for row, size in enumerate(batch.lengths_B.tolist()):
        texts[row, 1 : size - 1] = (torch.arange(1, size - 1) > size // 2).int()
    batch.extras["segment_ids"] = texts
    found = torch.stack(syntax_masks(batch, options)).numpy()
    for row, size in enumerate(batch.lengths_B.tolist()):
        parents = batch.parents_BL[row, :size].tolist()
        expected = slow_masks(parents, texts[row, :size].tolist(), options)
        expected[~expected.any(-1)] = True  # what sees nothing sees everything
        assert np.array_equal(found[:, row, :size, :size], expected)
        assert not found[:, row, :size, size:].any()


def model_of(stock, attention=SDPA, **options) -> SyntaxModel:
    torch.manual_seed(2)
    config = SyntaxConfig(
        encoder=stock.to_dict(),
        attention=attention,
        model={"name": "syntax_masks.v1", "distances": 2, **options},
        task={"name": "mlm.v1"},
    )
    return SyntaxModel(config).eval()


@pytest.mark.parametrize("aggregation", ["as_published", "as_released"])
@torch.no_grad()
def test_a_layer_mixes_its_sub_networks_as_a_slow_twin_does(
    bert_config, make_batch, aggregation
) -> None:
    model, batch = model_of(bert_config, aggregation=aggregation), make_batch(roots=0.1)
    encoder = model.encoder
    for weight in encoder.topics.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    hidden = encoder(batch, output_hidden_states=True).hidden_states
    masks = syntax_masks(batch, encoder.options)
    layer, topic = encoder.stock.encoder.layer[0], encoder.topics[0]
    own, states = layer.attention.self, hidden[0]
    for b, size in enumerate(batch.lengths_B.tolist()):
        query, key, value = (
            one(states[b, :size]).view(size, N, -1) for one in (own.query, own.key, own.value)
        )
        mixed = torch.zeros(size, states.shape[-1])
        for i in range(size):
            outcomes = []
            for mask in masks:
                heads = []
                for n in range(N):
                    seen = [j for j in range(size) if mask[b, i, j]]
                    scores = torch.stack([query[i, n] @ key[j, n] for j in seen])
                    shares = (scores / math.sqrt(query.shape[-1])).softmax(0)
                    heads.append(sum(p * value[j, n] for p, j in zip(shares, seen, strict=True)))
                outcomes.append(torch.cat(heads))
            if aggregation == "as_released":
                mixed[i] = sum(outcomes) / math.sqrt(len(masks))
                continue
            shares = torch.stack([topic.topic_D @ topic.key(one) for one in outcomes]).softmax(0)
            mixed[i] = sum(p * topic.value(c) for p, c in zip(shares, outcomes, strict=True))
        attended = layer.attention.output(mixed, states[b, :size])
        expected = layer.output(layer.intermediate(attended), attended)
        assert torch.allclose(hidden[1][b, :size], expected, atol=1e-4)


@torch.no_grad()
def test_fused_and_spelt_out_attention_agree_and_syntax_matters(encoder_config, make_batch) -> None:
    batch = make_batch(pad=2)
    real = batch.attention_mask_BL
    fused, spelt, plain = (
        model_of(encoder_config, attention, use_syntax=use).encoder(batch).last_hidden_state[real]
        for attention, use in ((SDPA, True), (EAGER, True), (SDPA, False))
    )
    assert torch.allclose(fused, spelt, atol=1e-5)
    assert not torch.allclose(fused, plain, atol=1e-3)


def test_a_new_encoder_begins_with_the_mean_of_its_sub_networks(bert_config) -> None:
    topic = model_of(bert_config).encoder.topics[0]
    outcomes = torch.randn(5, 2, 3, N, 4)
    assert torch.allclose(topic(outcomes), outcomes.mean(0), atol=1e-6)


def test_an_encoder_whose_layers_drop_masks_is_refused(bert_config) -> None:
    encoder = model_of(bert_config).encoder
    encoder.check_attention()
    attention = encoder.stock.encoder.layer[1].attention.self
    attention.register_forward_pre_hook(
        lambda _, args, options: (args, {**options, "subnetworks": None}), with_kwargs=True
    )
    with pytest.raises(SpecError, match=r"does not obey syntax .* is missed by"):
        encoder.check_attention()


def test_a_run_trains_on_the_sample(store, small_recipe, tmp_path) -> None:
    settings = ("joint_root=false", "separator_edge=none", "distances=2", "pairs=true")
    recipe = small_recipe("model.name=syntax_masks.v1", *settings, "objectives=[]")
    run = train(recipe, store, tmp_path / "run")
    assert np.isfinite(run.progress.losses).all()
