"""Attention with syntax in encoders other than BERT's kin, against loops over pairs of pieces."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import fields

import pytest
import torch
from transformers import (
    AlbertConfig,
    DebertaV2Config,
    DebertaV2Model,
    ModernBertConfig,
    PreTrainedModel,
)

from trainer.nn.attention import EAGER, SDPA, LayerSyntax, LocalAttention, SubNetworks
from trainer.nn.rows import AttentionRows
from trainer.nn.stock import before_attention, layers_of, load_encoder, new_stock

B, L, N, K, D, LAYERS = 2, 9, 4, 2, 4, 4
SIZE = {
    "vocab_size": 60,
    "hidden_size": N * D,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": N,
    "intermediate_size": 32,
    "max_position_embeddings": 16,
    "initializer_range": 0.3,
    "pad_token_id": 0,
}
V3 = {
    "relative_attention": True,
    "pos_att_type": "p2c|c2p",
    "share_att_key": True,
    "position_buckets": 4,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
    "type_vocab_size": 0,
}
CONFIGS = {
    "albert": AlbertConfig(**SIZE, embedding_size=8, num_hidden_groups=2),
    "deberta-v3": DebertaV2Config(**SIZE, **V3),
    "deberta-v2": DebertaV2Config(
        **SIZE, relative_attention=True, pos_att_type=["c2p", "p2c"], max_relative_positions=3
    ),
    "deberta-c2p": DebertaV2Config(**SIZE, relative_attention=True, pos_att_type=["c2p"]),
    "modernbert": ModernBertConfig(
        **SIZE, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, local_attention=6
    ),
}
KINDS = list(CONFIGS)
MASK = torch.ones(B, L, dtype=torch.bool)
MASK[1, 6:] = False


def build(kind: str, attention: str = SDPA) -> PreTrainedModel:
    torch.manual_seed(1)
    return new_stock(deepcopy(CONFIGS[kind]), attention).eval()


@pytest.fixture
def inputs() -> dict[str, torch.Tensor]:
    return {"input_ids": torch.randint(5, 50, (B, L)), "attention_mask": MASK.long()}


def every_part() -> LayerSyntax:
    heads = {name: torch.randn(B, K, L, D) for name in ("query_BKLD", "key_BKLD", "value_BKLD")}
    factor = 3 * torch.rand(B, K, L, L)
    return LayerSyntax(**heads, score_BNLL=torch.randn(B, N, L, L), factor_BKLL=factor)


def nearness() -> LocalAttention:
    near = torch.rand(B, L, L) < 0.4
    return LocalAttention(near | torch.eye(L, dtype=torch.bool), torch.rand(B, L))


def turned(states_LD: torch.Tensor, base: float) -> torch.Tensor:
    """Each pair of numbers of a head turned by its place times the pair's speed."""
    found = torch.zeros_like(states_LD)
    half = states_LD.shape[1] // 2
    for place, row in enumerate(states_LD):
        for m in range(half):
            angle = place * base ** (-m / half)
            x, y = float(row[m]), float(row[m + half])
            found[place, m] = x * math.cos(angle) - y * math.sin(angle)
            found[place, m + half] = y * math.cos(angle) + x * math.sin(angle)
    return found


def place_of(config: DebertaV2Config, distance: int) -> int:
    """The row of a distance: one each up to half of the buckets, then ever coarser."""
    buckets, largest = getattr(config, "position_buckets", 0), config.max_relative_positions
    span = buckets or (largest if largest > 0 else config.max_position_embeddings)
    if buckets:
        middle, far = buckets // 2, config.max_position_embeddings
        if abs(distance) > middle:
            share = math.log(abs(distance) / middle) / math.log((far - 1) / middle)
            distance = int(math.copysign(math.ceil(share * (middle - 1)) + middle, distance))
    return min(max(distance + span, 0), 2 * span - 1)


class SlowLayer:
    """One layer's attention of one example, up to the map behind it, in float64 and by loops."""

    def __init__(self, encoder: PreTrainedModel, number: int, part: LayerSyntax, row: int) -> None:
        self.encoder, self.number, self.row = encoder, number, row
        self.config, self.part = encoder.config, part
        layer = layers_of(encoder)[number]
        self.own = layer.attn if hasattr(layer, "attn") else layer.attention
        self.own = getattr(self.own, "self", self.own)

    def heads(self, states: torch.Tensor) -> torch.Tensor:
        return states.view(-1, N, D).transpose(0, 1).double()

    def projected(self, states: torch.Tensor) -> list[torch.Tensor]:
        own, kind = self.own, self.config.model_type
        if kind == "modernbert":
            found = [self.heads(one) for one in own.Wqkv(states).chunk(3, -1)]
            base = self.config.rope_parameters[self.config.layer_types[self.number]]["rope_theta"]
            turns = (torch.stack([turned(head, base) for head in one]) for one in found[:2])
            return [*turns, found[2]]
        names = ("query", "key", "value")
        ending = "_proj" if kind == "deberta-v2" else ""
        return [self.heads(getattr(own, name + ending)(states)) for name in names]

    def tables(self) -> list[torch.Tensor | None]:
        """Keys, then queries of positions, where scores have them."""
        kinds = self.config.pos_att_type if self.config.model_type == "deberta-v2" else []
        found: list[torch.Tensor | None] = []
        for kind, name in (("c2p", "key"), ("p2c", "query")):
            if kind not in kinds:
                found.append(None)
                continue
            rows = self.encoder.encoder.get_rel_embedding()
            own = f"{name}_proj" if self.own.share_att_key else f"pos_{name}_proj"
            found.append(self.heads(getattr(self.own, own)(rows)))
        return found

    def scores(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores (N, L, L), with syntax, and the values (N, L, D)."""
        query, key, value = self.projected(states)
        part, row = self.part, self.row
        for own, bias in zip(
            (query, key, value), (part.query_BKLD, part.key_BKLD, part.value_BKLD), strict=True
        ):
            own[:K] += bias[row, :, : len(states)].double()
        tables = self.tables()
        divisor = math.sqrt(D * (1 + sum(one is not None for one in tables)))
        window = math.inf
        if self.config.model_type == "modernbert" and self.own.sliding_window:
            window = self.config.local_attention // 2
        found = torch.full((N, len(states), len(states)), -math.inf, dtype=torch.float64)
        for head in range(N):
            for i in range(len(states)):
                for j in range(len(states)):
                    if abs(i - j) > window:
                        continue
                    score = query[head, i] @ key[head, j]
                    for state, table in zip((query[head, i], key[head, j]), tables, strict=True):
                        if table is not None:
                            score = score + state @ table[head, place_of(self.config, i - j)]
                    score = score / divisor
                    if head < K:
                        score = score * part.factor_BKLL[row, head, i, j]
                    found[head, i, j] = score + part.score_BNLL[row, head, i, j]
        return found, value


@pytest.mark.parametrize("attention", [SDPA, EAGER])
@pytest.mark.parametrize("number", [0, 1, 3])
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_attention_with_every_part_of_syntax_is_that_of_a_slow_twin(
    kind, number, attention, inputs
) -> None:
    encoder, part, local, seen = build(kind, attention), every_part(), nearness(), {}

    def note(states, _):
        seen["states"] = states
        return {"local": local, "recorder": rows}

    rows = AttentionRows()
    before_attention(encoder, number, note)
    syntax: list[LayerSyntax | None] = [None] * LAYERS
    syntax[number] = part
    attended = []
    slow = SlowLayer(encoder, number, part, 0)
    handle = slow.own.register_forward_hook(
        lambda _, args, output: attended.append((args[0], output[0]))
    )
    encoder(**inputs, syntax=syntax)
    handle.remove()
    (found,) = [output for states, output in attended if states is seen["states"]]
    for row, size in enumerate(MASK.sum(1).tolist()):
        slow.row = row
        states = seen["states"][row, :size]
        scores, value = slow.scores(states)
        near = local.mask_BLL[row, :size, :size]
        share = local.weight_BL[row, :size].double()[None, :, None]
        weights = torch.lerp(
            scores.softmax(-1), scores.masked_fill(~near, -math.inf).softmax(-1), share
        )
        places = torch.arange(size).repeat(B, 1)
        assert (rows.weights(places)[row, ..., :size] - weights).abs().max() < 1e-5
        context = (weights @ value).transpose(0, 1).reshape(size, N * D).float()
        own = slow.own
        if kind == "albert":
            context = own.LayerNorm(states + own.dense(context))
        if kind == "modernbert":
            context = own.Wo(context)
        assert (found[row, :size] - context).abs().max() < 1e-5


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("deberta")])
@torch.no_grad()
def test_deberta_gives_the_states_that_transformers_own_gives(kind, inputs, tmp_path) -> None:
    """And is saved as one of those: it has the same weights, and reads them."""
    encoder = build(kind)
    encoder.save_pretrained(tmp_path)
    stock = DebertaV2Model.from_pretrained(tmp_path).eval()
    wanted = {"output_hidden_states": True, "output_attentions": True}
    expected, found = stock(**inputs, **wanted), build(kind, EAGER)(**inputs, **wanted)
    for one, two in zip(expected.hidden_states, found.hidden_states, strict=True):
        assert (one - two)[MASK].abs().max() < 1e-5
    for one, two in zip(expected.attentions, found.attentions, strict=True):
        assert (one - two).transpose(1, 2)[MASK].abs().max() < 1e-5
    loaded = load_encoder(str(tmp_path), CONFIGS[kind], SDPA).eval()
    assert type(loaded) is type(encoder)
    states = [one(**inputs).last_hidden_state for one in (loaded, encoder)]
    assert torch.equal(*states)


@torch.no_grad()
def test_sub_networks_read_within_the_window_of_a_layer(inputs) -> None:
    """A row whose only near position is outside of the window reads what the window lets it."""
    far = torch.zeros(B, L, L, dtype=torch.bool)
    far[..., 0] = True
    found = []
    for attention in (SDPA, EAGER):
        encoder = build("modernbert", attention)
        for number in range(LAYERS):
            networks = SubNetworks([far], lambda outcomes: outcomes[0])
            before_attention(encoder, number, lambda *_, own=networks: {"subnetworks": own})
        found.append(encoder(**inputs).last_hidden_state[MASK])
    assert found[0].isfinite().all()
    assert (found[0] - found[1]).abs().max() < 1e-5


def test_every_part_is_in_the_twin() -> None:
    assert all(getattr(every_part(), field.name) is not None for field in fields(LayerSyntax))
