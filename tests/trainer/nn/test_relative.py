"""Relative positions: against a slow twin, under shifts, with local attention, saved and loaded."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoConfig, AutoModel, BertConfig

from syntax.errors import SpecError
from trainer.nn.attention import EAGER, SDPA, LocalAttention
from trainer.nn.relative import RelativeBertConfig, RelativeBertModel
from trainer.nn.stock import positions_of

B, L, P = 2, 9, 12
SIZE = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "max_position_embeddings": P,
    "initializer_range": 0.4,
}
KINDS = ["relative_key", "relative_key_query"]


def build(kind: str = "relative_key_query", attention: str = "sdpa") -> RelativeBertModel:
    torch.manual_seed(1)
    config = RelativeBertConfig(**SIZE, position_embedding_type=kind)
    return AutoModel.from_config(config, attn_implementation=attention).eval()


@pytest.fixture
def inputs() -> dict[str, torch.Tensor]:
    mask = torch.ones(B, L, dtype=torch.long)
    mask[1, 5:] = 0
    return {"input_ids": torch.randint(5, 60, (B, L)), "attention_mask": mask}


def states(model, inputs, **options) -> torch.Tensor:
    return model(**inputs, **options).last_hidden_state[inputs["attention_mask"].bool()]


def slow_attention(module, states_LD: torch.Tensor, kind: str) -> torch.Tensor:
    """One sequence without padding: every pair of every head by itself."""
    heads, size = module.num_attention_heads, module.attention_head_size
    length = len(states_LD)
    query, key, value = (
        (getattr(module, name)(states_LD)).view(length, heads, size)
        for name in ("query", "key", "value")
    )
    found = torch.zeros(length, heads, size, dtype=torch.float64)
    for head in range(heads):
        for i in range(length):
            scores = torch.zeros(length, dtype=torch.float64)
            for j in range(length):
                r = module.distance_embedding.weight[i - j + P - 1]
                score = query[i, head] @ key[j, head] + query[i, head] @ r
                if kind == "relative_key_query":
                    score = score + key[j, head] @ r
                scores[j] = score / size**0.5
            found[i, head] = scores.softmax(0) @ value[:, head]
    return found.reshape(length, -1)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_attention_is_that_of_a_slow_twin(kind, attention) -> None:
    model = build(kind, attention).double()
    own = model.encoder.layer[1].attention.self
    states_LD = torch.randn(7, 16, dtype=torch.float64)
    given = own(states_LD[None])[0]
    assert (given[0] - slow_attention(own, states_LD, kind)).abs().max() < 1e-12


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_both_implementations_agree_and_are_ours(kind, inputs) -> None:
    fused, spelt = build(kind, "sdpa"), build(kind, "eager")
    assert fused.config._attn_implementation == SDPA
    assert spelt.config._attn_implementation == EAGER
    assert (states(fused, inputs) - states(spelt, inputs)).abs().max() < 1e-5
    default = AutoModel.from_config(RelativeBertConfig(**SIZE))
    assert default.config._attn_implementation == SDPA


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@torch.no_grad()
def test_a_prefix_of_pads_changes_nothing(attention, inputs) -> None:
    model = build(attention=attention)
    pads = torch.zeros(B, 3, dtype=torch.long)
    shifted = {name: torch.cat([pads, tensor], 1) for name, tensor in inputs.items()}
    assert (states(model, inputs) - states(model, shifted)).abs().max() < 1e-5
    absolute = AutoModel.from_config(BertConfig(**SIZE)).eval()
    assert (states(absolute, inputs) - states(absolute, shifted)).abs().max() > 1e-2


@torch.no_grad()
def test_order_is_seen_only_through_the_table(inputs) -> None:
    model = build()
    reordered = {name: tensor[:1].flip(1) for name, tensor in inputs.items()}
    first = {name: tensor[:1] for name, tensor in inputs.items()}
    forth, back = states(model, first), states(model, reordered)
    assert (forth - back.flip(0)).abs().max() > 1e-2
    for layer in model.encoder.layer:
        layer.attention.self.distance_embedding.weight.zero_()
    forth, back = states(model, first), states(model, reordered)
    assert (forth - back.flip(0)).abs().max() < 1e-5


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@torch.no_grad()
def test_local_attention_has_the_same_positions(attention) -> None:
    model = build(attention=attention)
    own = model.encoder.layer[0].attention.self
    states_BLD, everything = torch.randn(B, L, 16), torch.ones(B, L, L, dtype=torch.bool)
    plain = own(states_BLD)[0]
    for share in (0.0, 0.4, 1.0):
        local = LocalAttention(everything, torch.full((B, L), share))
        assert (own(states_BLD, local=local)[0] - plain).abs().max() < 1e-5
    near = torch.eye(L, dtype=torch.bool).expand(B, L, L)
    alone = own(states_BLD, local=LocalAttention(near, torch.ones(B, L)))[0]
    assert (alone - own.value(states_BLD)).abs().max() < 1e-5


def test_the_table_is_trained_saved_and_loaded(inputs, tmp_path) -> None:
    model = build()
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    tables = [layer.attention.self.distance_embedding.weight for layer in model.encoder.layer]
    before = [table.detach().clone() for table in tables]
    model(**inputs).last_hidden_state.square()[..., 0].sum().backward()
    optimizer.step()
    assert all(table.shape == (2 * P - 1, 4) for table in tables)
    assert not any(torch.equal(*pair) for pair in zip(tables, before, strict=True))
    model.eval().save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path).eval()
    assert isinstance(loaded, RelativeBertModel)
    assert loaded.config.position_embedding_type == "relative_key_query"
    assert torch.equal(states(loaded, inputs), states(model, inputs))
    assert not [name for name in loaded.state_dict() if "position_embeddings" in name]


def test_weights_are_drawn_as_bert_draws_them() -> None:
    config = RelativeBertConfig(
        **{**SIZE, "initializer_range": 0.02, "max_position_embeddings": 99}
    )
    model = AutoModel.from_config(config)
    for layer in model.encoder.layer:
        deviation = layer.attention.self.distance_embedding.weight.detach().std()
        assert 0.015 < float(deviation) < 0.025


def test_other_kinds_of_positions_are_refused() -> None:
    with pytest.raises(SpecError, match="it is relative_key or relative_key_query"):
        build("rotary")


def test_the_configuration_tells_how_long_a_sequence_may_be() -> None:
    assert positions_of(build()) == P
    content = RelativeBertConfig(**SIZE).to_dict()
    assert AutoConfig.for_model(**content).to_dict() == content
