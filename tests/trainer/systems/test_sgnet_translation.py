"""SG-Net over the Transformer's encoder: the mix, both readings of equation 7."""

from __future__ import annotations

import pytest
import torch

from trainer.models.config import SyntaxConfig
from trainer.nn.attention import EAGER, SDPA
from trainer.options import SgNetTransformerOptions
from trainer.systems import SYSTEMS

NAME = SgNetTransformerOptions().mask_name
SIZE = {"layers": 2, "hidden_size": 16, "heads": 2, "feed_forward": 32}


def encoder_of(model="sgnet_transformer.v1", attention=SDPA, **options):
    torch.manual_seed(3)
    told = SYSTEMS[model].options(**SIZE, **options)
    stock = {**told.new_encoder(), "vocab_size": 60, "pad_token_id": 0}
    config = SyntaxConfig(
        encoder=stock, attention=attention, model={"name": model, **SIZE, **options}
    )
    return SYSTEMS[model].load_encoder()(config).eval()


@pytest.fixture
def guided_batch(batch_for):
    return batch_for(SgNetTransformerOptions(), pad=2)


@pytest.mark.parametrize("options", [{"alpha": 1.0}, {"use_syntax": False}])
@torch.no_grad()
def test_with_alpha_one_or_no_syntax_it_is_the_plain_encoder_bit_for_bit(
    guided_batch, options
) -> None:
    encoder, plain = encoder_of(**options), encoder_of("transformer.v1")
    plain.encoder.load_state_dict(encoder.encoder.state_dict())
    expected = plain(guided_batch).last_hidden_state
    assert torch.equal(encoder(guided_batch).last_hidden_state, expected)
    assert not torch.equal(encoder_of()(guided_batch).last_hidden_state, expected)


@pytest.mark.parametrize("attention", [SDPA, EAGER])
@pytest.mark.parametrize("masking", ["add", "multiply"])
@torch.no_grad()
def test_equation_7_in_both_readings(guided_batch, attention, masking) -> None:
    """The slow twin of one head at a time; a multiplied score of 0 leaves a weight."""
    encoder, seen = encoder_of(attention=attention, masking=masking), {}
    layer = encoder.guided.self_attn
    layer.register_forward_pre_hook(lambda _, args: seen.update(states=args[0]))
    layer.out_proj.register_forward_pre_hook(lambda _, args: seen.update(output=args[0]))
    encoder(guided_batch)
    mask = guided_batch.extras[NAME]
    for row, size in enumerate(guided_batch.lengths_B.tolist()):
        states = seen["states"][row, :size]
        expected = torch.zeros_like(states)
        for head in range(2):
            part = slice(head * 8, head * 8 + 8)
            q, k, v = (
                linear(states)[:, part] for linear in (layer.q_proj, layer.k_proj, layer.v_proj)
            )
            logits, allowed = q @ k.T / 8**0.5, mask[row, :size, :size]
            forbidden = 0.0 if masking == "multiply" else -torch.inf
            expected[:, part] = logits.masked_fill(~allowed, forbidden).softmax(-1) @ v
        assert (seen["output"][row, :size] - expected).abs().max() < 1e-5


def test_the_layer_obeys_its_mask() -> None:
    encoder_of().check_attention()
