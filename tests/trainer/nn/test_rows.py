"""Rows of attention weights, against the weights that the eager attention writes out."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModel, ElectraConfig, ModernBertConfig, PreTrainedModel

from syntax.errors import SpecError
from trainer.nn.attention import EAGER, SDPA, LayerSyntax, LocalAttention
from trainer.nn.relative import RelativeBertConfig
from trainer.nn.rows import AttentionRows
from trainer.nn.stock import layers_of

B, L, N, K, D, LAYERS = 2, 7, 4, 2, 4, 3
POSITIONS = torch.tensor([[0, 3, 6], [2, 2, 1]])


def build(config, implementation: str) -> PreTrainedModel:
    torch.manual_seed(1)
    return AutoModel.from_config(config, attn_implementation=implementation).eval()


@pytest.fixture
def inputs() -> dict[str, torch.Tensor]:
    mask = torch.ones(B, L, dtype=torch.long)
    mask[1, 4:] = 0
    return {"input_ids": torch.randint(5, 50, (B, L)), "attention_mask": mask}


def taken(weights: torch.Tensor) -> torch.Tensor:
    """The rows of all weights, an example after the other."""
    return torch.stack([own[:, at] for own, at in zip(weights, POSITIONS, strict=True)])


def last_weights(config, inputs, **options) -> torch.Tensor:
    """What the last layer of the eager encoder says that it computed."""
    model = build(config, EAGER)
    return model(**inputs, output_attentions=True, **options).attentions[-1]


@pytest.mark.parametrize("implementation", [SDPA, EAGER])
@pytest.mark.parametrize("padded", [True, False])
def test_rows_are_those_of_the_last_layer(encoder_config, inputs, implementation, padded) -> None:
    if not padded:
        inputs["attention_mask"][:] = 1
    rows = AttentionRows()
    build(encoder_config, implementation)(**inputs, recorder=rows)
    found, expected = rows.weights(POSITIONS), taken(last_weights(encoder_config, inputs))
    assert found.shape == (B, N, POSITIONS.shape[1], L)
    assert torch.allclose(found, expected, atol=1e-6)
    assert not padded or not found[1, ..., 4:].any()


@pytest.mark.parametrize("family", [ElectraConfig, ModernBertConfig])
def test_rows_are_had_of_other_families(family, inputs) -> None:
    size = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4}
    config = family(intermediate_size=32, pad_token_id=0, **size)
    rows, expected = AttentionRows(), taken(last_weights(config, inputs))
    build(config, SDPA)(**inputs, recorder=rows)
    assert torch.allclose(rows.weights(POSITIONS), expected, atol=1e-6)


@pytest.mark.parametrize("implementation", [SDPA, EAGER])
@pytest.mark.parametrize("positions", ["relative_key", "relative_key_query"])
def test_rows_have_relative_positions(inputs, implementation, positions) -> None:
    size = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4}
    config = RelativeBertConfig(position_embedding_type=positions, intermediate_size=32, **size)
    config.initializer_range = 0.5
    rows, expected = AttentionRows(), taken(last_weights(config, inputs))
    build(config, implementation)(**inputs, recorder=rows)
    assert torch.allclose(rows.weights(POSITIONS), expected, atol=1e-5)


@pytest.mark.parametrize("implementation", [SDPA, EAGER])
def test_rows_have_the_biases_of_syntax(encoder_config, inputs, implementation) -> None:
    layer = LayerSyntax(
        query_BKLD=torch.randn(B, K, L, D),
        key_BKLD=torch.randn(B, K, L, D),
        value_BKLD=torch.randn(B, K, L, D),
        score_BNLL=torch.randn(B, N, L, L),
    )
    syntax, rows = [layer, None, layer], AttentionRows()
    build(encoder_config, implementation)(**inputs, syntax=syntax, recorder=rows)
    expected = taken(last_weights(encoder_config, inputs, syntax=syntax))
    assert torch.allclose(rows.weights(POSITIONS), expected, atol=1e-6)
    assert not torch.allclose(expected, taken(last_weights(encoder_config, inputs)), atol=1e-2)


@pytest.mark.parametrize("implementation", [SDPA, EAGER])
def test_rows_are_the_mix_of_both_attentions(encoder_config, inputs, implementation) -> None:
    near = torch.rand(B, L, L) < 0.4
    local = LocalAttention(near | torch.eye(L, dtype=torch.bool), torch.rand(B, L))

    def attending(implementation: str) -> PreTrainedModel:
        model = build(encoder_config, implementation)
        for layer in layers_of(model):
            layer.attention.self.register_forward_pre_hook(
                lambda _, args, options: (args, {**options, "local": local}), with_kwargs=True
            )
        return model

    rows = AttentionRows()
    attending(implementation)(**inputs, recorder=rows)
    weights = attending(EAGER)(**inputs, output_attentions=True).attentions[-1]
    assert torch.allclose(rows.weights(POSITIONS), taken(weights), atol=1e-6)


def test_keeping_rows_changes_no_state(encoder_config, inputs) -> None:
    model = build(encoder_config, SDPA)
    with_rows = model(**inputs, recorder=AttentionRows()).last_hidden_state
    assert torch.equal(with_rows, model(**inputs).last_hidden_state)


def test_rows_teach_what_the_weights_teach(bert_config, inputs) -> None:
    """The same gradients as the whole weights of the eager attention give."""
    rows, fused, spelt = AttentionRows(), build(bert_config, SDPA), build(bert_config, EAGER)
    directions = torch.randn(B, N, POSITIONS.shape[1], L)
    fused(**inputs, recorder=rows)
    (rows.weights(POSITIONS) * directions).sum().backward()
    weights = spelt(**inputs, output_attentions=True).attentions[-1]
    (taken(weights) * directions).sum().backward()
    for (name, mine), theirs in zip(fused.named_parameters(), spelt.parameters(), strict=True):
        assert (mine.grad is None) == (theirs.grad is None), name
        if mine.grad is not None:
            assert torch.allclose(mine.grad, theirs.grad, atol=1e-6), name


def test_rows_are_exact_under_autocast(bert_config, inputs) -> None:
    model, rows = build(bert_config, SDPA), AttentionRows()
    with torch.autocast("cpu", torch.bfloat16):
        model(**inputs, recorder=rows)
        found = rows.weights(POSITIONS)
    assert rows.layer.query.dtype == torch.bfloat16
    assert found.dtype == torch.float32
    assert torch.allclose(found.sum(-1), torch.ones(()), atol=1e-6)


def test_dropout_is_that_of_the_layer_and_only_on_request(bert_config, inputs) -> None:
    bert_config.attention_probs_dropout_prob = 0.5
    model, rows = build(bert_config, SDPA).train(), AttentionRows()
    model(**inputs, recorder=rows)
    kept, dropped = rows.weights(POSITIONS), rows.weights(POSITIONS, dropped=True)
    gone = (dropped == 0) & (kept > 0)
    assert gone.any()
    assert torch.allclose(dropped[~gone], 2 * kept[~gone])
    model.eval()(**inputs, recorder=rows)
    assert torch.equal(rows.weights(POSITIONS, dropped=True), rows.weights(POSITIONS))


def test_activations_that_are_computed_again_leave_the_gradients(bert_config, inputs) -> None:
    gradients = []
    for again in (False, True):
        model, rows = build(bert_config, SDPA), AttentionRows()
        if again:
            model.activation_checkpointing_enable({"use_reentrant": False})
        states = model.train()(**inputs, recorder=rows).last_hidden_state
        (states.sum() + rows.weights(POSITIONS).square().sum()).backward()
        gradients.append(layers_of(model)[-1].attention.self.query.weight.grad)
    assert torch.allclose(*gradients, atol=1e-7)


def test_an_attention_that_hands_nothing_out_is_refused(bert_config, inputs) -> None:
    rows = AttentionRows()
    build(bert_config, "sdpa")(**inputs, recorder=rows)
    with pytest.raises(SpecError, match="do not hand out what they attend with"):
        rows.weights(POSITIONS)
