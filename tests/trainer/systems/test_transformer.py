"""The Transformer against torch's own, and its search against all hypotheses there are."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import nn
from transformers import DynamicCache, EncoderDecoderCache

from trainer.nn.generation import Search, generate
from trainer.nn.stock import new_stock
from trainer.nn.transformer import GeneratingDecoder, TransformerConfig, decoder_config

PAD, START, END = 0, 1, 2
WIDTH, HEADS, INNER = 16, 4, 32


@pytest.fixture
def config() -> TransformerConfig:
    return TransformerConfig(
        d_model=WIDTH,
        encoder_layers=2,
        num_hidden_layers=2,
        encoder_attention_heads=HEADS,
        encoder_ffn_dim=INNER,
        vocab_size=20,
        pad_token_id=PAD,
        scale_embedding=True,
        activation_function="relu",
        is_encoder_decoder=False,
        max_position_embeddings=40,
    )


def decoder_of(config: TransformerConfig, vocabulary: int, **options: bool) -> GeneratingDecoder:
    torch.manual_seed(1)
    sizes = decoder_config(config, None, vocabulary, PAD, START, END)
    decoder = GeneratingDecoder(sizes, **options).eval()
    for weight in decoder.parameters():
        if weight.dim() == 1:  # norms and biases that change something
            nn.init.normal_(weight, 0.5, 0.2)
    return decoder


@pytest.fixture
def source() -> tuple[torch.Tensor, torch.Tensor]:
    """States of two texts, the second of which is shorter."""
    torch.manual_seed(2)
    mask = torch.ones(2, 6, dtype=torch.bool)
    mask[1, 4:] = False
    return torch.randn(2, 6, WIDTH), mask


def copy_attention(ours: nn.Module, theirs: nn.MultiheadAttention) -> None:
    parts = (ours.q_proj, ours.k_proj, ours.v_proj)
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.out_proj.state_dict())


def positions(length: int) -> torch.Tensor:
    """Vaswani et al. 2017, section 3.5, sines before cosines."""
    rates = 10_000 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    angles = torch.arange(length)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], 1)


@torch.no_grad()
def test_the_encoder_equals_torchs(config) -> None:
    encoder = new_stock(config).eval()
    ids = torch.randint(3, 20, (2, 7))
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    states = encoder.embed_tokens(ids) * WIDTH**0.5 + positions(7)
    for ours in encoder.layers:
        theirs = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, batch_first=True).eval()
        copy_attention(ours.self_attn, theirs.self_attn)
        for name, there in (("fc1", "linear1"), ("fc2", "linear2")):
            getattr(theirs, there).load_state_dict(getattr(ours, name).state_dict())
        theirs.norm1.load_state_dict(ours.self_attn_layer_norm.state_dict())
        theirs.norm2.load_state_dict(ours.final_layer_norm.state_dict())
        states = theirs(states, src_key_padding_mask=mask == 0)
    found = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    assert (found - states)[mask.bool()].abs().max() < 1e-5


@torch.no_grad()
def test_the_decoder_equals_torchs(config, source) -> None:
    decoder, (memory, mask) = decoder_of(config, 12), source
    ids = torch.randint(3, 12, (2, 5))
    states = decoder.decoder.embed_tokens(ids) * WIDTH**0.5 + positions(5)
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    for ours in decoder.decoder.layers:
        theirs = nn.TransformerDecoderLayer(WIDTH, HEADS, INNER, batch_first=True).eval()
        copy_attention(ours.self_attn, theirs.self_attn)
        copy_attention(ours.encoder_attn, theirs.multihead_attn)
        for name, there in (
            *(("fc1", "linear1"), ("fc2", "linear2"), ("self_attn_layer_norm", "norm1")),
            *(("encoder_attn_layer_norm", "norm2"), ("final_layer_norm", "norm3")),
        ):
            getattr(theirs, there).load_state_dict(getattr(ours, name).state_dict())
        states = theirs(states, memory, tgt_mask=causal, memory_key_padding_mask=~mask)
    expected = states @ decoder.decoder.embed_tokens.weight.T
    assert (decoder(ids, memory, mask).logits - expected).abs().max() < 1e-4


@torch.no_grad()
def test_a_cache_gives_what_is_computed_again(config, source) -> None:
    decoder, ids = decoder_of(config, 12), torch.randint(3, 12, (2, 6))
    cache, parts = EncoderDecoderCache(DynamicCache(), DynamicCache()), []
    for at in range(6):
        output = decoder(ids[:, at : at + 1], *source, past_key_values=cache, use_cache=True)
        parts.append(output.logits)
    assert (torch.cat(parts, 1) - decoder(ids, *source).logits).abs().max() < 1e-4
    searches = (Search(START, END, PAD, 4, longest=12, cache=cache) for cache in (True, False))
    assert torch.equal(*(generate(decoder, *source, one) for one in searches))


def scores(decoder, states, mask, hypotheses) -> torch.Tensor:
    """The sum of log-probabilities of hypotheses of one length, of one text."""
    count = len(hypotheses)
    before = torch.cat([torch.full((count, 1), START), hypotheses[:, :-1]], 1)
    logits = decoder(before, states.expand(count, -1, -1), mask.expand(count, -1)).logits
    found = logits.log_softmax(-1).gather(-1, hypotheses[..., None])[..., 0]
    return found.sum(1)


def best_of_all(decoder, states, mask, longest: int, penalty: float) -> list[int]:
    """By scoring every hypothesis that there is."""
    every: list[tuple[float, list[int]]] = []
    vocabulary = decoder.config.decoder_vocab_size
    for length in range(1, longest + 1):
        rows = [
            [*row, last]
            for row in product([x for x in range(vocabulary) if x != END], repeat=length - 1)
            for last in (range(vocabulary) if length == longest else (END,))
        ]
        sums = scores(decoder, states, mask, torch.tensor(rows)) / length**penalty
        every += zip(sums.tolist(), rows, strict=True)
    return max(every)[1]


@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0])
@torch.no_grad()
def test_a_wide_beam_finds_the_best_of_all_hypotheses(config, source, penalty) -> None:
    decoder, (states, mask) = decoder_of(config, 5), source
    with torch.no_grad():  # ends are likely enough to compete
        decoder.decoder.embed_tokens.weight.mul_(0.3)
    search = Search(START, END, PAD, 150, penalty, longest=4, stop="exact")
    found = generate(decoder, states, mask, search)
    for row in range(2):
        one = slice(row, row + 1)
        expected = best_of_all(decoder, states[one], mask[one], 4, penalty)
        assert found[row].tolist()[: len(expected)] == expected
        assert set(found[row].tolist()[len(expected) :]) <= {PAD}


@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.0])
@torch.no_grad()
def test_each_source_has_its_own_limit(config, source, penalty) -> None:
    """The best of all hypotheses of 5 pieces at most, and of 3 beside them."""
    decoder, (states, mask) = decoder_of(config, 5), source
    with torch.no_grad():  # ends are rare
        decoder.decoder.embed_tokens.weight.mul_(0.3)
        decoder.decoder.embed_tokens.weight[END] = -0.3
    search = Search(START, END, PAD, 700, penalty, further=-1, stop="exact")
    found = generate(decoder, states, mask, search).tolist()
    for row, longest in enumerate((5, 3)):
        one = slice(row, row + 1)
        expected = best_of_all(decoder, states[one], mask[one], longest, penalty)
        assert len(expected) == longest or not penalty  # without one, short ones are better
        assert found[row][: len(expected)] == expected
        assert set(found[row][len(expected) :]) <= {PAD, END}


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("cache", [True, False])
@torch.no_grad()
def test_a_hypothesis_is_as_long_alone_as_beside_a_longer_source(
    config, source, beam, cache
) -> None:
    decoder, (states, mask) = decoder_of(config, 12), source
    decoder.decoder.embed_tokens.weight[END] = -9.0  # none ends by itself
    search = Search(START, END, PAD, beam, further=5, cache=cache)
    both = generate(decoder, states, mask, search)
    assert both.shape == (2, 11)
    alone = generate(decoder, states[1:, :4], mask[1:, :4], search)
    assert alone.shape == (1, 9)
    assert both[1, :9].tolist() == alone[0].tolist()
    assert set(both[1, 9:].tolist()) <= {PAD, END}
    assert END not in alone


@torch.no_grad()
def test_a_beam_of_one_is_greedy(config, source) -> None:
    decoder = decoder_of(config, 12)
    ids = torch.full((2, 1), START)
    for _ in range(8):
        best = decoder(ids, *source).logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, best], 1)
    found = generate(decoder, *source, Search(START, END, PAD, 1, longest=8))
    for ours, expected in zip(found.tolist(), ids[:, 1:].tolist(), strict=True):
        length = expected.index(END) + 1 if END in expected else len(expected)
        assert ours[:length] == expected[:length]


@torch.no_grad()
def test_a_layer_may_go_before_the_output(config, source) -> None:
    """SG-Net for translation, equation 17."""
    ids, given = torch.randint(3, 12, (2, 5)), []
    decoder = decoder_of(config, 12, output_mlp=True)
    decoder.hidden.register_forward_hook(lambda _, args, output: given.append((args[0], output)))
    found = decoder(ids, *source).logits
    ((states, hidden),) = given
    assert torch.allclose(hidden, states @ decoder.hidden.weight.T + decoder.hidden.bias)
    words = decoder.decoder.embed_tokens.weight
    assert torch.allclose(nn.functional.gelu(hidden) @ words.T, found, atol=1e-5)
