"""SG-Net's layer and aggregation against their equations, spelt out, over BERT and Transformer."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from transformers import AutoModel

from syntax.errors import SpecError
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxForSequenceClassification
from trainer.nn.attention import EAGER, SDPA
from trainer.options import SgNetOptions, SgNetTransformerOptions
from trainer.systems import SYSTEMS
from trainer.systems.sgnet.encoder import BiAttention, Concatenation, DualAggregation

NAME = SgNetTransformerOptions().mask_name
REAL = torch.ones(2, 3, dtype=torch.bool)
SIZE = {"layers": 2, "hidden_size": 16, "heads": 2, "feed_forward": 32}


def model_of(encoder, attention=SDPA, **options) -> SyntaxForSequenceClassification:
    torch.manual_seed(3)
    config = SyntaxConfig(
        encoder=encoder.to_dict(),
        attention=attention,
        model={"name": "sgnet.v1", **options},
        classes={"label": ["no", "yes", "maybe"]},
    )
    return SyntaxForSequenceClassification(config).eval()


def stock_states(encoder_config, encoder, batch):
    stock = AutoModel.from_config(encoder_config, add_pooling_layer=False).eval()
    stock.load_state_dict(encoder.encoder.state_dict())
    return stock(batch.input_ids_BL, attention_mask=batch.attention_mask_BL.long())[0]


def slow_attention(attention, states, mask, masking):
    """Attention of one example by equation 7, one head and one position at a time."""
    heads, size = attention.num_attention_heads, attention.attention_head_size
    out = torch.zeros_like(states)
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        q, k, v = (
            linear(states)[:, part] for linear in (attention.query, attention.key, attention.value)
        )
        for i in range(len(states)):
            every = range(len(states))
            seen = [j for j in every if mask[i, j]] if masking == "as_released" else []
            scores = {j: q[i] @ k[j] / size**0.5 for j in seen or every}
            if masking == "as_published":
                scores = {j: score * mask[i, j] for j, score in scores.items()}
            weights = torch.stack(list(scores.values())).softmax(0)
            out[i, part] = sum(weight * v[j] for weight, j in zip(weights, scores, strict=True))
    return out


@pytest.mark.parametrize("attention", [SDPA, EAGER])
@pytest.mark.parametrize("variant", ["as_published", "as_released", "convert_span"])
@pytest.mark.parametrize("masking", ["as_published", "as_released", "none"])
@torch.no_grad()
def test_the_guided_attention_equals_its_slow_twin(
    bert_config, batch_for, attention, variant, masking
) -> None:
    """Equation 7. Fails on the release, whose scores of masked positions are not 0."""
    batch = batch_for(SgNetOptions(mask=variant), pad=2)
    encoder = model_of(bert_config, attention, mask=variant, masking=masking).encoder
    layer, seen = encoder.guided.attention.self, {}
    layer.register_forward_hook(
        lambda _, args, output: seen.update(states=args[0], output=output[0])
    )
    encoder(batch)
    mask = batch.extras[SgNetOptions(mask=variant).mask_name]
    for row, size in enumerate(batch.lengths_B.tolist()):
        states = seen["states"][row, :size]
        expected = slow_attention(layer, states, mask[row], masking)
        assert (seen["output"][row, :size] - expected).abs().max() < 1e-5


@torch.no_grad()
def test_what_follows_the_attention_is_as_published(bert_config) -> None:
    """Section 3.2, one position at a time. Fails on the release, which has a whole layer."""
    guided = model_of(bert_config).encoder.guided
    wide, _, narrow, _ = guided.network
    context, states = torch.randn(2, 5, 16), torch.randn(2, 5, 16)
    guided.attention.self.register_forward_hook(lambda *_: (context, None))
    found = guided(states, None)
    for b in range(2):
        for i in range(5):
            inner = torch.nn.functional.gelu(wide.weight @ context[b, i] + wide.bias)
            told = narrow.weight @ inner + narrow.bias + states[b, i]
            norm = (told - told.mean()) / (told.var(unbiased=False) + guided.norm.eps) ** 0.5
            assert torch.allclose(found[b, i], norm, atol=1e-5)
    assert not hasattr(model_of(bert_config, layer="as_released").encoder.guided, "network")


@pytest.mark.parametrize("specials", ["as_published", "as_released"])
@torch.no_grad()
def test_the_states_are_mixed_as_published(bert_config, batch_for, specials) -> None:
    """Equation 9 and footnote 11. Fails on the release, which mixes special tokens, too."""
    batch = batch_for(SgNetOptions())
    encoder, seen = model_of(bert_config, alpha=0.3, specials=specials).encoder, {}
    encoder.guided.register_forward_hook(lambda *given: seen.update(guided=given[2]))
    own = stock_states(bert_config, encoder, batch)
    found = encoder(batch).last_hidden_state
    expected = 0.3 * own + 0.7 * seen["guided"]
    special = batch.special_tokens_mask_BL
    if specials == "as_published":
        expected[special] = own[special]
    assert special.any()
    assert (found - expected)[batch.attention_mask_BL].abs().max() < 1e-5
    assert list(encoder.aggregation.parameters()) == []


@torch.no_grad()
def test_a_concatenation_is_mapped_to_the_width() -> None:
    mix, own, guided = Concatenation(4), torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    found = mix(own, guided, torch.ones(2, 3, dtype=torch.bool))
    for b in range(2):
        for i in range(3):
            both = torch.tensor([*own[b, i].tolist(), *guided[b, i].tolist()])
            assert torch.allclose(found[b, i], mix.linear.weight @ both + mix.linear.bias)


@torch.no_grad()
def test_bi_attention_equals_its_slow_twin() -> None:
    """Seo et al. 2017, equations 1 and 2 and what follows, one pair of positions at a time."""
    mix, own, guided = BiAttention(4), torch.randn(2, 5, 4), torch.randn(2, 5, 4)
    sizes = (5, 3)
    found = mix(own, guided, torch.arange(5) < torch.tensor(sizes)[:, None])
    weight = torch.cat([mix.own.weight, mix.guided.weight, mix.product.weight], 1)[0]
    for b, size in enumerate(sizes):
        h, g, every = own[b], guided[b], range(size)
        s = torch.stack(
            [
                torch.stack([weight @ torch.cat([h[i], g[j], h[i] * g[j]]) for j in every])
                for i in every
            ]
        )
        best = torch.stack([max(s[i]) for i in every]).softmax(0)
        v = sum(best[i] * h[i] for i in every)
        for i in every:
            shares = s[i].softmax(0)
            u = sum(shares[j] * g[j] for j in every)
            told = mix.linear(torch.cat([h[i], u, h[i] * u, h[i] * v]))
            assert torch.allclose(found[b, i], told, atol=1e-5)


@torch.no_grad()
def test_a_layer_without_a_mask_reads_no_tree(bert_config, batch_for) -> None:
    """The vanilla layer of Table 6."""
    assert SgNetOptions(masking="none").matrices() == ()
    batch = batch_for(SgNetOptions(masking="none"))
    assert not batch.extras
    model_of(bert_config, masking="none").encoder(batch)


def test_a_layer_that_drops_the_mask_is_refused(bert_config) -> None:
    encoder = model_of(bert_config).encoder
    encoder.check_attention()
    encoder.guided.attention.self.config._attn_implementation = "sdpa"
    with pytest.raises(SpecError, match="its attention was computed 0 times"):
        encoder.check_attention()


@pytest.mark.parametrize("variant", ["as_published", "as_released", "convert_span"])
@pytest.mark.parametrize("others", ["as_published", "as_released"])
@torch.no_grad()
def test_a_classifier_of_cls_reads_no_tree(bert_config, batch_for, variant, others) -> None:
    """What [CLS] sees depends on no tree: the study of noise on SNLI (7.6) can tell nothing."""
    batch, name = batch_for(SgNetOptions(mask=variant)), SgNetOptions(mask=variant).mask_name
    mask_BLL, words_BL = batch.extras[name].bool(), ~batch.special_tokens_mask_BL
    between_BLL = words_BL[:, :, None] & words_BL[:, None] & batch.attention_mask_BL[:, None]
    other = replace(batch, extras={name: mask_BLL ^ between_BLL})
    model = model_of(bert_config, mask=variant, masking=others, specials=others)
    assert torch.equal(model(batch).logits["label"], model(other).logits["label"])
    states = [model.encoder(one).last_hidden_state[words_BL] for one in (batch, other)]
    assert not torch.equal(*states)


@pytest.mark.parametrize(
    ("task", "specials", "warned"),
    [
        ("sequence_classification.v1", "as_published", 1),
        ("sequence_classification.v1", "as_released", 0),
        ("extractive_qa.v1", "as_published", 0),
    ],
)
def test_a_class_read_from_a_position_that_is_not_mixed_is_warned_of(
    task, specials, warned
) -> None:
    told = list(SgNetOptions(specials=specials).warnings(None, {"task.name": task}))
    assert ["model.specials=as_released" in one for one in told] == [True] * warned


@torch.no_grad()
def test_the_released_shares_are_learned_and_start_equal() -> None:
    mix = DualAggregation(SgNetOptions(aggregation="as_released"))
    own, guided = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    assert torch.allclose(mix(own, guided, REAL), (own + guided) / 2)
    mix.weights_2.copy_(torch.tensor([1.0, 0.0]))
    mix.gamma.fill_(2.0)
    share = torch.e / (torch.e + 1)
    assert torch.allclose(mix(own, guided, REAL), 2 * (share * own + (1 - share) * guided))


def test_shares_outside_their_range_are_refused() -> None:
    with pytest.raises(SpecError, match=r"model\.alpha is 1\.5"):
        SgNetOptions(alpha=1.5)


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
def test_with_alpha_one_or_no_syntax_it_is_the_plain_transformer_bit_for_bit(
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


def test_the_layer_over_the_transformer_obeys_its_mask() -> None:
    encoder_of().check_attention()
