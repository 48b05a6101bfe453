"""Syntax-aware local attention against its equations, spelt out."""

from __future__ import annotations

import pytest
import torch

from syntax.errors import SpecError
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxForSequenceClassification
from trainer.nn.attention import EAGER, SDPA
from trainer.options import SlaOptions


def model_of(encoder, attention=SDPA, **options) -> SyntaxForSequenceClassification:
    torch.manual_seed(3)
    config = SyntaxConfig(
        encoder=encoder.to_dict(),
        attention=attention,
        model={"name": "sla.v1", **options},
        classes={"label": ["no", "yes", "maybe"]},
    )
    return SyntaxForSequenceClassification(config).eval()


def slow_layer(encoder, states, near, shares):
    """One attention of one example by the equations: two softmaxes, mixed row by row."""
    attention = encoder.attention.self
    heads, size = attention.num_attention_heads, attention.attention_head_size
    out = torch.zeros_like(states)
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        q, k, v = (
            linear(states)[:, part] for linear in (attention.query, attention.key, attention.value)
        )
        for i in range(len(states)):
            scores = torch.stack([q[i] @ k[j] / size**0.5 for j in range(len(states))])
            everything = scores.softmax(0)
            local = scores.masked_fill(~near[i], float("-inf")).softmax(0)
            weights = (1 - shares[i]) * everything + shares[i] * local
            out[i, part] = weights @ v
    return out


@pytest.mark.parametrize("attention", [SDPA, EAGER])
@pytest.mark.parametrize("gate", ["as_published", "as_released"])
@torch.no_grad()
def test_a_layer_equals_its_slow_twin(bert_config, batch_for, take_row, attention, gate) -> None:
    """Fails if the gate weighs the other of the two attentions."""
    options = SlaOptions(threshold=1, gate=gate)
    batch = batch_for(options)
    encoder = model_of(bert_config, attention, threshold=1, gate=gate).encoder
    layer, seen = encoder.encoder.encoder.layer[1], {}
    layer.attention.self.register_forward_hook(
        lambda _, args, output: seen.update(states=args[0], output=output[0])
    )
    encoder(batch)
    linear = encoder.gates["1"].linear
    for row, size in enumerate(batch.lengths_B.tolist()):
        states, near = seen["states"][row, :size], batch.extras[options.mask][row, :size, :size]
        g = torch.sigmoid(linear(states)).squeeze(-1)
        shares = 1 - g if gate == "as_published" else g
        expected = slow_layer(layer, states, near, shares)
        assert (seen["output"][row, :size] - expected).abs().max() < 1e-5


RELEASED = "!\"#$%&'()*+,.-/:;<=>?@[\\]^_"
PIECES = ["[PAD]", "[CLS]", ".", "...", "%", "##.", "\u2026", "a", "(", "##s", *"bcdefghijkl"]


@torch.no_grad()
def test_released_punctuation_goes_by_the_string_of_a_piece(bert_config, batch_for) -> None:
    """A loop over pieces, as it is done before the release's training; fails on tags."""
    options = SlaOptions(threshold=1, punctuation="pieces")
    batch = batch_for(options, pad=2)
    model = model_of(bert_config, threshold=1, punctuation="pieces")
    model.encoder.mark_punctuation(PIECES)
    batch.input_ids_BL[:] = (torch.arange(batch.input_ids_BL.numel()) % 23).view_as(
        batch.input_ids_BL
    )
    found = model.encoder.near(batch)
    plain = batch.extra(options.mask)
    marked = 0
    for row, size in enumerate(batch.lengths_B.tolist()):
        expected = plain[row, :size, :size].clone()
        for column, number in enumerate(batch.input_ids_BL[row, :size].tolist()):
            piece = PIECES[number].lower() if number < len(PIECES) else "more"
            if piece in RELEASED:
                expected[:, column] = True
                marked += 1
        assert torch.equal(found[row, :size, :size], expected)
        assert not found[row, :size, size:].any(), "padding is read by nobody"
    assert marked > 2


@pytest.mark.parametrize("punctuation", [False, True])
def test_only_punctuation_by_string_needs_strings(bert_config, punctuation) -> None:
    """Other models have no table, and so the weights that they had."""
    names = model_of(bert_config, punctuation=punctuation).state_dict()
    assert not any("punctuation" in name for name in names)


@torch.no_grad()
def test_marked_punctuation_comes_back_with_a_saved_model(tmp_path, bert_config, batch_for) -> None:
    model = model_of(bert_config, punctuation="pieces")
    model.encoder.mark_punctuation(PIECES)
    model.save_pretrained(tmp_path)
    loaded = SyntaxForSequenceClassification.from_pretrained(tmp_path).eval()
    assert loaded.encoder.punctuation_V.nonzero().flatten().tolist() == [2, 4, 8]
    batch = batch_for(SlaOptions(punctuation="pieces"))
    assert torch.equal(loaded(batch).logits["label"], model(batch).logits["label"])


def test_only_chosen_layers_have_a_gate(bert_config) -> None:
    assert list(model_of(bert_config, local_layers=[2, 0]).encoder.gates) == ["0", "2"]
    with pytest.raises(SpecError, match=r"local_layers is 3; .* at most 2"):
        model_of(bert_config, local_layers=[3])


def test_a_batch_without_the_mask_is_refused_by_name(bert_config, batch) -> None:
    with pytest.raises(SpecError, match=r"carries no sla_mask\(threshold=3"):
        model_of(bert_config)(batch)
