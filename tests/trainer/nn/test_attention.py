from __future__ import annotations

from dataclasses import fields

import pytest
import torch
from transformers import AutoModel

from trainer.nn.attention import EAGER, SDPA, LayerSyntax

B, L, N, K, D, LAYERS = 2, 7, 4, 2, 4, 3
STOCK = {SDPA: "sdpa", EAGER: "eager"}


def build(config, implementation: str):
    torch.manual_seed(1)
    return AutoModel.from_config(
        config, attn_implementation=implementation, add_pooling_layer=False
    ).eval()


@pytest.fixture
def inputs() -> dict[str, torch.Tensor]:
    mask = torch.ones(B, L, dtype=torch.long)
    mask[1, 4:] = 0
    return {"input_ids": torch.randint(5, 50, (B, L)), "attention_mask": mask}


def syntax(**parts: torch.Tensor) -> list[LayerSyntax | None]:
    """Biases in the first and the last of the three layers."""
    layer = LayerSyntax(**parts)
    return [layer, None, layer]


def every_part() -> dict[str, torch.Tensor]:
    heads = {name: torch.randn(B, K, L, D) for name in ("query_BKLD", "key_BKLD", "value_BKLD")}
    factor = 3 * torch.rand(B, K, L, L)
    return {**heads, "score_BNLL": torch.randn(B, N, L, L), "factor_BKLL": factor}


def states(model, inputs, **options) -> torch.Tensor:
    """The states of real pieces."""
    output = model(**inputs, **options).last_hidden_state
    return output[inputs["attention_mask"].bool()]


@pytest.mark.parametrize("implementation", [SDPA, EAGER])
@pytest.mark.parametrize("with_biases", [False, True])
def test_without_syntax_or_with_biases_of_zero_the_encoder_is_the_stock_one(
    encoder_config, inputs, implementation, with_biases
) -> None:
    zeros = {name: torch.zeros_like(part) for name, part in every_part().items()}
    zeros["factor_BKLL"] += 1
    options = {"syntax": syntax(**zeros)} if with_biases else {}
    ours = states(build(encoder_config, implementation), inputs, **options)
    stock = states(build(encoder_config, STOCK[implementation]), inputs)
    assert (ours - stock).abs().max() <= 1e-6


@pytest.mark.parametrize("name", [field.name for field in fields(LayerSyntax)])
def test_each_part_reaches_the_attention_and_both_implementations_agree(
    encoder_config, inputs, name
) -> None:
    parts = syntax(**{name: every_part()[name]})
    fused = states(build(encoder_config, SDPA), inputs, syntax=parts)
    spelt = states(build(encoder_config, EAGER), inputs, syntax=parts)
    plain = states(build(encoder_config, SDPA), inputs)
    assert (fused - spelt).abs().max() <= 1e-5
    assert (fused - plain).abs().max() > 1e-3


@pytest.mark.parametrize("implementation", [SDPA, EAGER])
@pytest.mark.parametrize("with_biases", [False, True])
def test_padding_takes_no_part(encoder_config, inputs, implementation, with_biases) -> None:
    model = build(encoder_config, implementation)
    options = {"syntax": syntax(**every_part())} if with_biases else {}
    before = states(model, inputs, **options)
    changed = {**inputs, "input_ids": inputs["input_ids"].clone()}
    changed["input_ids"][1, 4:] = 3
    assert torch.equal(states(model, changed, **options), before)


def test_a_score_bias_needs_no_padding_mask(encoder_config, inputs) -> None:
    whole = {"input_ids": inputs["input_ids"]}
    bias = torch.zeros(1, 1, L, L)
    bias[..., 3] = -1e9
    parts = [LayerSyntax(score_BNLL=bias)] * LAYERS
    model = build(encoder_config, EAGER)
    weights = model(**whole, syntax=parts, output_attentions=True).attentions
    assert all(layer[..., 3].max() == 0 for layer in weights)


def test_only_the_first_heads_of_the_chosen_layers_change(bert_config, inputs) -> None:
    model = build(bert_config, EAGER)
    parts = [None, LayerSyntax(query_BKLD=torch.randn(B, K, L, D)), None]
    plain = model(**inputs, output_attentions=True).attentions
    biased = model(**inputs, syntax=parts, output_attentions=True).attentions
    changed = (plain[1] - biased[1]).abs().amax((0, 2, 3)) > 0
    assert torch.equal(plain[0], biased[0])
    assert changed.tolist() == [True, True, False, False]
