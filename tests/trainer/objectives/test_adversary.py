"""The language adversary: its losses and gradients, beside slow twins in float64."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.objectives.test_structure import CONFIG, WideEncoder
from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.discriminator import Discriminator, StrongDiscriminator
from trainer.nn.positions import every_position, word_positions
from trainer.objectives.adversary import LanguageAdversary
from trainer.objectives.adversary_options import READ, AdversaryOptions
from trainer.options import MAIN

OTHER = "de"
SOFT = (0.8, 0.1)
FORMS = [
    *({"method": name} for name in ("gan", "wgan", "reversal", "multitask")),
    {"method": "gan", "gan_loss": "as_released", "soft_labels": SOFT},
]
SIZES = ("weak", "not_so_weak", "strong")


def adversary(**options: object) -> LanguageAdversary:
    """A discriminator of two languages, in float64."""
    chosen = AdversaryOptions(**{"strength": 0.3, "dropout": 0.0, **options})
    own = {"name": chosen.name}
    streams = {OTHER: {"task": None, "objectives": [own], "classes": {}}}
    config = SyntaxConfig(encoder=CONFIG.encoder, objectives=[own], streams=streams)
    torch.manual_seed(1)
    return LanguageAdversary(chosen, config, WideEncoder(CONFIG)).double()


def of_stream(batch: SyntaxBatch, stream: str, options: AdversaryOptions) -> SyntaxBatch:
    read = {name: torch.from_numpy(of) for name, of in options.targets(batch.arrays).items()}
    return replace(batch, stream=stream, extras={**batch.extras, **read})


@pytest.fixture
def states(batch) -> torch.Tensor:
    return torch.randn(*batch.input_ids_BL.shape, WideEncoder.width, dtype=torch.float64)


def loss_of(module: LanguageAdversary, states, batch, stream: str) -> torch.Tensor:
    return module(SyntaxEncoding(states), of_stream(batch, stream, module.options))


def gradients(module: LanguageAdversary, states, batch, stream: str):
    """Of the states, and of the discriminator's weights."""
    states = states.clone().requires_grad_()
    module.zero_grad()
    loss_of(module, states, batch, stream).backward()
    found = states.grad if states.grad is not None else torch.zeros_like(states)
    return found, [weight.grad.clone() for weight in module.parameters()]


def slow_loss(module: LanguageAdversary, scores: np.ndarray, stream: str) -> float:
    """The discriminator's loss on a batch, word by word."""
    options, total, source = module.options, 0.0, stream == MAIN
    for word in scores:
        if options.method == "wgan":
            total += -word[0] if source else word[0]
        elif options.method == "gan":
            label = float(source)
            if options.gan_loss == "as_released":
                label = SOFT[0] if source else SOFT[1]
            true = 1 / (1 + math.exp(-word[0]))
            one = -label * math.log(true) - (1 - label) * math.log(1 - true)
            total += one / 2 if options.gan_loss == "as_released" else one
        else:
            shares = np.exp(word) / np.exp(word).sum()
            total += -math.log(shares[0 if source else 1]) / 2
    return total / len(scores)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stream", [MAIN, OTHER])
@pytest.mark.parametrize("level", ["word", "sentence"])
def test_the_discriminators_loss_equals_its_slow_twin(batch, states, form, stream, level) -> None:
    module = adversary(**form, level=level)
    linear = [one for one in module.discriminator.modules() if isinstance(one, torch.nn.Linear)]
    words = []
    for row, size in enumerate(batch.lengths_B.tolist()):
        own = [states[row, at].numpy() for at in range(1, size - 1)]
        words += own if level == "word" else [np.mean(own, axis=0)]
    scores = []
    for hidden in words:
        for number, layer in enumerate(linear):
            weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
            hidden = weight @ hidden + bias
            hidden = np.tanh(hidden) if number < len(linear) - 1 else hidden
        scores.append(hidden)
    expected = slow_loss(module, np.array(scores), stream)
    found = loss_of(module, states, batch, stream)
    assert found.item() == pytest.approx(expected, rel=1e-5)
    with torch.no_grad():
        assert loss_of(module, states, batch, stream).item() == found.item()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("stream", [MAIN, OTHER])
def test_each_half_of_the_loss_teaches_its_own_weights(batch, states, form, size, stream) -> None:
    """The encoder learns nothing by D's half, and D nothing by the encoder's."""
    quiet, loud = (adversary(**form, discriminator=size, strength=x) for x in (0.0, 7.0))
    of_states, of_weights = gradients(quiet, states, batch, stream)
    assert not of_states.any()
    assert any(one.any() for one in of_weights)
    _, same = gradients(loud, states, batch, stream)
    assert all(torch.equal(*pair) for pair in zip(of_weights, same, strict=True))


def plain_gradient(module: LanguageAdversary, states, batch, stream: str) -> torch.Tensor:
    """Of D's loss, as if nothing were detached."""
    states, batch = states.clone().requires_grad_(), of_stream(batch, stream, module.options)
    read, real = module._read(states, batch.extra(READ))
    language = module.languages.index(stream)
    module.discriminator_loss(*module.discriminator(read, real), language).backward()
    assert states.grad is not None
    return states.grad


@pytest.mark.parametrize("stream", [MAIN, OTHER])
@pytest.mark.parametrize("size", SIZES)
def test_reversed_gradients_are_minus_lambda_times_the_plain_ones(
    batch, states, stream, size
) -> None:
    for method, sign in (("reversal", -1), ("gan", -1), ("multitask", 1)):
        module = adversary(method=method, discriminator=size, strength=0.3)
        found, _ = gradients(module, states, batch, stream)
        plain = plain_gradient(module, states, batch, stream)
        assert plain.any()
        assert torch.allclose(found, sign * 0.3 * plain, rtol=1e-5, atol=1e-9)


def test_the_encoder_of_the_releases_learns_by_the_auxiliary_language_alone(batch, states) -> None:
    """And is to look like the source: its loss is BCE(D(b), y1), or -mean D(b)."""
    for form in (FORMS[1], FORMS[4]):
        module = adversary(**form)
        assert not gradients(module, states, batch, MAIN)[0].any()
        found, _ = gradients(module, states, batch, OTHER)
        own = states.clone().requires_grad_()
        read, real = module._read(own, of_stream(batch, OTHER, module.options).extra(READ))
        scores = module.discriminator(read, real)[0][real][:, 0]
        if form["method"] == "wgan":
            (-0.3 * scores.mean()).backward()
        else:
            shares = torch.sigmoid(scores)
            losses = SOFT[0] * shares.log() + (1 - SOFT[0]) * (1 - shares).log()
            (-0.3 * losses.mean()).backward()
        assert torch.allclose(found, own.grad, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("level", ["word", "sentence"])
@torch.no_grad()
def test_padding_and_specials_count_only_as_released(make_batch, states, form, size, level) -> None:
    short, padded = make_batch(), make_batch(pad=3)
    wide = torch.nn.functional.pad(states, (0, 0, 0, 3), value=5.0)
    for variant, same in (("as_published", True), ("as_released", False)):
        module = adversary(**form, discriminator=size, level=level, positions=variant)
        before = float(loss_of(module, states, short, OTHER))
        after = float(loss_of(module, wide, padded, OTHER))
        assert (after == pytest.approx(before, rel=1e-6)) == same, variant


def new_discriminator(size: str, level: str, scores: int) -> Discriminator:
    """Of states of width 6, in float64."""
    torch.manual_seed(0)
    if size == "strong":
        return StrongDiscriminator(6, scores, level).double()
    return Discriminator(6, scores, () if size == "weak" else (256, 128), level).double()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("level", ["word", "sentence"])
@torch.no_grad()
def test_a_discriminator_reads_the_words_of_its_sequence_alone(size, level) -> None:
    one = new_discriminator(size, level, 2)
    states, real = torch.randn(2, 9, 6).double(), torch.ones(2, 9, dtype=torch.bool)
    real[0, 5:] = False
    alone, _ = one(states[:1, :5], real[:1, :5])
    both, counted = one(states, real)
    assert torch.allclose(both[:1, : alone.shape[1]], alone, rtol=1e-12)
    assert counted.equal(real if level == "word" else torch.ones(2, 1, dtype=torch.bool))


@pytest.mark.parametrize("residual", ["as_published", "as_released"])
@pytest.mark.parametrize("level", ["word", "sentence"])
@torch.no_grad()
def test_the_strong_discriminator_equals_its_slow_twin(level, residual) -> None:
    """Compared with the release's code, too. A sentence's mean comes after the convolutions."""
    torch.manual_seed(0)
    one = StrongDiscriminator(6, 2, level, residual).double()
    states = torch.randn(1, 7, 6).double()

    def convolved(layer: torch.nn.Conv1d, rows: list[torch.Tensor]) -> list[torch.Tensor]:
        reach = (layer.kernel_size[0] - 1) // 2
        return [
            layer.bias
            + sum(
                layer.weight[:, :, shift + reach] @ rows[at + shift]
                for shift in range(-reach, reach + 1)
                if 0 <= at + shift < len(rows)
            )
            for at in range(len(rows))
        ]

    rows = convolved(one.narrow, list(states[0]))
    for first, second in one.blocks:
        inner = convolved(first, [row.relu() for row in rows])
        added = convolved(second, [row.relu() for row in inner])
        kept = [row.relu() for row in rows] if residual == "as_released" else rows
        rows = [row + 0.3 * more for row, more in zip(kept, added, strict=True)]
    if level == "sentence":
        rows = [sum(rows) / len(rows)]
    (linear,) = one.layers
    expected = torch.stack([linear.weight @ row + linear.bias for row in rows])
    found, _ = one(states, torch.ones(1, 7, dtype=torch.bool))
    assert torch.allclose(found[0], expected, rtol=1e-10)


def test_both_halves_read_the_states_after_the_same_dropout(batch, states) -> None:
    """Whole features of a sequence, in training alone."""
    module = adversary(dropout=0.5, discriminator="weak", method="multitask", strength=1.0)
    positions = of_stream(batch, MAIN, module.options).extra(READ)
    torch.manual_seed(3)
    read, real = module._read(torch.ones_like(states), positions)
    kept = torch.stack([row[words][0] for row, words in zip(read, real, strict=True)])
    assert all((row[words] == own).all() for row, words, own in zip(read, real, kept, strict=True))
    assert set(kept.unique().tolist()) == {0.0, 2.0}
    torch.manual_seed(3)
    of_states, (of_weight, _) = gradients(module, states, batch, MAIN)
    assert of_states.any(1).equal(kept > 0)
    assert of_weight.any(0).equal(kept.any(0))
    assert module.eval()._read(torch.ones_like(states), positions)[0].unique().tolist() == [0, 1]


@given(
    st.lists(
        st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 1)), max_size=8),
        min_size=1,
        max_size=3,
    )
)
def test_words_stand_where_their_first_pieces_do(rows) -> None:
    L = max(1, *map(len, rows))
    padded = [row + [(-1, -1)] * (L - len(row)) for row in rows]
    both = np.array(padded, np.int32).reshape(len(rows), L, 2)
    arrays = {"word_ids": both[..., 0], "segment_ids": both[..., 1]}
    found = word_positions(arrays)
    for row, own in zip(padded, found.tolist(), strict=True):
        expected = [
            at
            for at, (word, text) in enumerate(row)
            if word >= 0 and (at == 0 or row[at - 1] != (word, text))
        ]
        assert own == expected + [-1] * (len(own) - len(expected))
    assert every_position(arrays).tolist() == [list(range(L))] * len(rows)
