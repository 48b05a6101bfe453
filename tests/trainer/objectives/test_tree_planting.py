"""Tree-planting: the supervision and the loss by loops, causal models and encoders."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from transformers import AutoModel, GPT2Config

from syntax.errors import SpecError
from tests.trainer.bracketed import bracketed_batch
from tests.trainer.contrasted import learned
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.nn.attention import EAGER, SDPA
from trainer.nn.rows import AttentionRows
from trainer.nn.stock import is_causal, run_encoder
from trainer.progress import outcomes_of

SIZES = [[6, 3], [9], [1], [4]]
SIZE = {"n_embd": 16, "n_layer": 2, "n_head": 4, "vocab_size": 60, "initializer_range": 0.5}


def stock_config(kind: str, bert_config):
    bert_config.initializer_range = 0.5
    return bert_config if kind == "encoder" else GPT2Config(**SIZE, n_positions=40, use_cache=False)


def model_of(stock, **options) -> SyntaxModel:
    torch.manual_seed(3)
    config = SyntaxConfig(
        encoder=stock.to_dict(),
        attention=SDPA,
        model={"name": "stock.v1"},
        task={"name": "trees.v1"},
        objectives=[{"name": "tree_planting.v1", **options}],
    )
    return SyntaxModel(config).eval()


def slow_loss(weights: np.ndarray, batch, causal: bool) -> float:
    """The mean over heads and words of KL(S_i || A_i), in float64. ``weights``: (K, B, L, L)."""
    losses = []
    arrays = batch.arrays
    for attention in weights:
        for row, words in enumerate(arrays["word_ids"]):
            pieces = {int(w): np.flatnonzero(words == w) for w in sorted({*words.tolist()} - {-1})}
            for i, own in pieces.items():
                edges = {
                    j: int(arrays["distance"][row, own[0], others[0]])
                    for j, others in pieces.items()
                    if (j < i if causal else j != i)
                }
                edges = {j: edge for j, edge in edges.items() if edge != 255}
                if not edges:
                    continue
                rows = own - 1 if causal else own
                paid = {j: attention[row][np.ix_(rows, pieces[j])].sum() for j in edges}
                target = {j: math.exp(-edge) for j, edge in edges.items()}
                whole, planted = sum(paid.values()), sum(target.values())
                losses.append(
                    sum(
                        target[j] / planted * math.log(target[j] / planted / (paid[j] / whole))
                        for j in edges
                    )
                )
    return float(np.mean(losses))


@pytest.mark.parametrize("kind", ["encoder", "causal"])
@pytest.mark.parametrize("heads", [(0,), (1, 3)])
@pytest.mark.parametrize("pad", [0, 3])
@torch.no_grad()
def test_the_loss_is_that_of_a_slow_twin(bert_config, kind, heads, pad) -> None:
    stock = stock_config(kind, bert_config)
    model, batch = model_of(stock, heads=list(heads)), bracketed_batch(SIZES, pad=pad)
    spelt = AutoModel.from_config(stock, attn_implementation="eager").eval()
    spelt.load_state_dict(model.encoder.stock.state_dict(), strict=False)
    weights = run_encoder(spelt, batch, output_attentions=True).attentions[-1].double().numpy()
    expected = slow_loss(weights.swapaxes(0, 1)[list(heads)], batch, kind == "causal")
    found = model(batch).objectives["tree_planting.v1"]
    assert expected > 0.1
    assert float(found) == pytest.approx(expected, rel=1e-4)


@torch.no_grad()
def test_rows_of_a_causal_model_without_padding_are_causal(bert_config) -> None:
    """Fused attention is then given no mask, and rows that miss it would see what comes."""
    batch = bracketed_batch([[5]])
    for implementation in (SDPA, EAGER):
        model = AutoModel.from_config(
            stock_config("causal", bert_config), attn_implementation=implementation
        ).eval()
        rows = AttentionRows()
        run_encoder(model, batch, recorder=rows)
        L = batch.input_ids_BL.shape[1]
        found = rows.weights(torch.arange(L)[None], heads=(2, 0))
        assert not found.triu(1).any()
        assert torch.allclose(found.sum(-1), torch.ones(()), atol=1e-6)
        assert torch.equal(found, rows.weights(torch.arange(L)[None])[:, [2, 0]])


def test_the_families_say_whether_they_are_causal(bert_config) -> None:
    assert not is_causal(AutoModel.from_config(bert_config))
    assert is_causal(AutoModel.from_config(stock_config("causal", bert_config)))


def test_a_head_that_is_not_there_is_refused(bert_config) -> None:
    with pytest.raises(SpecError, match="names the head 4, and the encoder has heads 0 to 3"):
        model_of(bert_config, heads=[0, 4])
    with pytest.raises(SpecError, match="name at least one head"):
        model_of(bert_config, heads=[])


def test_examples_without_a_pair_of_words_are_counted_and_have_no_loss(bert_config) -> None:
    assert outcomes_of(bracketed_batch(SIZES).arrays)["example_without_planted_rows"] == 1
    batch = bracketed_batch([[1], [1, 1]])
    model = model_of(bert_config).train()
    loss = model(batch).objectives["tree_planting.v1"]
    loss.backward()
    assert loss.item() == 0
    assert all(one.grad is None or one.grad.isfinite().all() for one in model.encoder.parameters())


@pytest.mark.parametrize("kind", ["encoder", "causal"])
def test_a_head_learns_the_tree(bert_config, kind) -> None:
    batch = bracketed_batch(SIZES)
    model = model_of(stock_config(kind, bert_config))
    first, last = learned(model, batch, "tree_planting.v1")
    assert last < 0.5 * first
