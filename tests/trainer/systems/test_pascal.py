"""Parent-scaled attention: positions of parents, the scaled scores by loops, the released order."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from transformers import AutoModel

from syntax.errors import SpecError
from tests.trainer.bracketed import projective_tree, sentence_arrays
from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.nn.attention import EAGER, SDPA, LayerSyntax
from trainer.nn.relative import RelativeBertConfig
from trainer.nn.stock import run_encoder
from trainer.systems.pascal.encoder import parent_density
from trainer.systems.pascal.options import PARENT_POSITIONS, PascalOptions, parent_positions

K, N = 2, 4


def parented_batch(sizes=((6, 3), (9,), (2, 2)), pad: int = 2) -> SyntaxBatch:
    rng = np.random.default_rng(1)
    trees = [[projective_tree(rng, size) for size in own] for own in sizes]
    arrays = PascalOptions().arrays(sentence_arrays(trees, rng, pad))
    return SyntaxBatch.from_numpy(arrays, {}, [PARENT_POSITIONS])


def encoder_of(stock, implementation=SDPA, **options):
    torch.manual_seed(2)
    config = SyntaxConfig(
        encoder=stock.to_dict(),
        attention=implementation,
        model={"name": "pascal.v1", **options},
        task={"name": "mlm.v1"},
    )
    return SyntaxModel(config).eval().encoder


def test_a_parent_stands_in_the_middle_of_its_pieces() -> None:
    """Fails on the position of the first piece, which other preparations of the release take."""
    batch = parented_batch()
    arrays, several = batch.arrays, 0
    found = parent_positions(arrays)
    for row, words in enumerate(arrays["word_ids"]):
        for column, word in enumerate(words):
            if word < 0:
                assert found[row, column] == -1
                continue
            above = arrays["parents"][row, np.flatnonzero(words == word)[0]]
            owner = word if above < 0 else words[above]
            places = np.flatnonzero(words == owner)
            assert found[row, column] == places.mean()
            several += len(places) > 1
    assert several


def test_the_density_is_the_normal_one() -> None:
    found = parent_density(torch.tensor([[1.5, -1.0, 0.0]]), variance=2.0)[0]
    for row, parent in enumerate((1.5, None, 0.0)):
        for column in range(3):
            expected = 1.0
            if parent is not None:
                expected = math.exp(-((column - parent) ** 2) / 4) / math.sqrt(4 * math.pi)
            assert float(found[row, column]) == pytest.approx(expected, rel=1e-6)


def slow_weights(layer, states: torch.Tensor, batch: SyntaxBatch, factor) -> np.ndarray:
    """softmax(s d) of a stock layer, in float64; ``factor``: (B, N, L, L)."""
    own = layer.attention.self
    query, key = (
        (states.double() @ one.weight.double().T + one.bias.double())
        .view(*states.shape[:2], N, -1)
        .transpose(1, 2)
        for one in (own.query, own.key)
    )
    scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
    scores = scores * factor.double()
    real = batch.attention_mask_BL[:, None, None]
    return scores.masked_fill(~real, -torch.inf).softmax(-1).numpy()


@pytest.mark.parametrize("scaled", ["as_published", "as_released"])
@torch.no_grad()
def test_attention_is_that_of_a_slow_twin(bert_config, scaled) -> None:
    batch = parented_batch()
    encoder = encoder_of(bert_config, EAGER, attention="eager", scaled=scaled)
    encoding = encoder(batch, output_hidden_states=True, output_attentions=True)
    density = parent_density(batch.extra(PARENT_POSITIONS))
    B, L = batch.input_ids_BL.shape
    factor = torch.ones(B, N, L, L)
    if scaled == "as_published":
        factor[:, :K] = density[:, None]
    else:
        # The last K B of the B N rows, an example's heads together, and parents likewise by K.
        for number in range(K * B):
            example, head = divmod((N - K) * B + number, N)
            factor[example, head] = density[number // K]
    expected = slow_weights(
        encoder.stock.encoder.layer[0], encoding.hidden_states[0], batch, factor
    )
    assert np.allclose(encoding.attentions[0].numpy(), expected, atol=1e-6)
    other = "as_released" if scaled == "as_published" else "as_published"
    found = encoder_of(bert_config, EAGER, attention="eager", scaled=other)
    found = found(batch, output_attentions=True).attentions[0].numpy()
    assert not np.allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("padding", [0, 2])
@torch.no_grad()
def test_fused_and_spelt_out_attention_agree(encoder_config, padding) -> None:
    batch = parented_batch(pad=padding)
    layers = {"syntax_layers": [0, 2], "syntax_heads": 3}
    fused, spelt = (
        encoder_of(encoder_config, attention, **layers)(batch).last_hidden_state
        for attention in (SDPA, EAGER)
    )
    real = batch.attention_mask_BL
    assert torch.allclose(fused[real], spelt[real], atol=1e-5)
    stock = encoder_of(encoder_config, use_syntax=False)(batch).last_hidden_state
    assert not torch.allclose(fused[real], stock[real], atol=1e-3)


@torch.no_grad()
def test_a_factor_scales_relative_positions_too() -> None:
    size = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": N}
    config = RelativeBertConfig(
        position_embedding_type="relative_key_query", intermediate_size=32, **size
    )
    config.initializer_range = 0.5
    batch = parented_batch(pad=0)
    B, L = batch.input_ids_BL.shape
    model = AutoModel.from_config(config, attn_implementation=EAGER).eval()
    flat = [LayerSyntax(factor_BKLL=torch.zeros(B, K, L, L))]
    found = run_encoder(model, batch, syntax=flat, output_attentions=True).attentions[0]
    real = batch.attention_mask_BL
    shares = real / real.sum(1, keepdim=True)
    assert torch.allclose(found[:, :K], shares[:, None, None].expand(-1, K, L, -1), atol=1e-5)
    assert not torch.allclose(found[:, K:], shares[:, None, None].expand(-1, N - K, L, -1))


def test_parents_are_ignored_in_training_alone(bert_config) -> None:
    parents = torch.zeros(3, 50)
    encoder = encoder_of(bert_config, parent_ignoring=0.4)
    (kept,) = [one for one in encoder.eval().syntax(parents) if one is not None]
    assert (kept.factor_BKLL < 1).all()
    (drawn,) = [one for one in encoder.train().syntax(parents) if one is not None]
    ignored = (drawn.factor_BKLL == 1).all(-1)
    assert drawn.factor_BKLL.shape == (3, K, 50, 50)
    assert 0.3 < ignored.float().mean() < 0.5
    assert torch.equal(drawn.factor_BKLL[~ignored], kept.factor_BKLL[~ignored])
    assert not torch.equal(ignored[:, 0], ignored[:, 1])


@pytest.mark.parametrize(
    "options",
    [{"syntax_heads": 5}, {"syntax_layers": [3]}, {"variance": 0}, {"parent_ignoring": 2}],
)
def test_impossible_options_are_refused(bert_config, options) -> None:
    with pytest.raises(SpecError, match=f"model.{next(iter(options))}"):
        encoder_of(bert_config, **options)
