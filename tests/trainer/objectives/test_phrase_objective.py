"""The contrast of phrases against its equations, and what the released functions do instead."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trainer.contrasted import (
    rows_of,
    samples_of,
    slow_phrase_loss,
    with_samples,
)
from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.attention import LayerAttention, LocalAttention
from trainer.nn.rows import AttentionRows
from trainer.objectives.phrase import PhraseContrast
from trainer.options import PhraseContrastOptions

WIDTH = 8
FORMS = ("as_published", "synclm", "lr_sib")
WAYS = ("phrase(probability=0.9)", "phrase(way=lr_sib, max_height=3)")


def objective(**options) -> PhraseContrast:
    return PhraseContrast(PhraseContrastOptions(**options), None, None)


def loss_of(batch: SyntaxBatch, rows: AttentionRows, **options) -> torch.Tensor:
    return objective(**options)(SyntaxEncoding(attention_rows=rows), batch)


def states_of(batch: SyntaxBatch, scale: float = 2.0) -> torch.Tensor:
    return scale * torch.randn(*batch.input_ids_BL.shape, WIDTH)


# make_batch is a function of its arguments alone.
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(3, 13), min_size=4, max_size=4),
    st.sampled_from(FORMS),
    st.sampled_from(WAYS),
    st.sampled_from([None, True, False]),
)
def test_the_loss_equals_its_slow_twin(make_batch, seed, sizes, form, way, per_position) -> None:
    batch = with_samples(make_batch(tuple(sizes), roots=0.1, pad=seed % 3, seed=seed), way)
    rows = rows_of(states_of(batch), batch)
    found = loss_of(batch, rows, phrase_loss=form, per_position=per_position)
    expected = slow_phrase_loss(batch, rows, form, per_position)
    assert float(found) == pytest.approx(expected, abs=2e-5)


def test_where_an_encoder_attends_locally_the_mix_counts(make_batch) -> None:
    batch = with_samples(make_batch(), "phrase(probability=1)")
    B, L = batch.input_ids_BL.shape
    near = (torch.rand(B, L, L) < 0.4) | torch.eye(L, dtype=torch.bool)
    local = LocalAttention(near & batch.attention_mask_BL[:, None], torch.rand(B, L))
    states = states_of(batch)
    mix = rows_of(states, batch, local=local)
    found = float(loss_of(batch, mix))
    assert found == pytest.approx(slow_phrase_loss(batch, mix, "as_published"), abs=1e-5)
    assert found != pytest.approx(float(loss_of(batch, rows_of(states, batch))), abs=1e-3)


def toy(positive: list[float], negative: list[float]) -> tuple[SyntaxBatch, torch.Tensor]:
    """Weights of one sample: of an anchor, its positive, and its only negative."""
    weights_SML = torch.tensor([[[0.7, 0.1, 0.1, 0.1], positive, negative]])
    return weights_SML, torch.ones(1, 1, dtype=torch.bool), torch.ones(1, 4, dtype=torch.bool)


SAME, FAR = [0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]


def test_the_published_loss_pulls_a_phrase_together() -> None:
    """Fails on lr-sib, whose similarity is the divergence itself."""

    def losses(**options) -> tuple[float, float]:
        one = objective(**options)
        return tuple(float(one.losses(*toy(*pair))) for pair in ((SAME, FAR), (FAR, SAME)))

    near, far = losses()
    assert near < 0.1 < 1 < far
    near, far = losses(phrase_loss="lr_sib")
    assert near > far
    near, far = losses(phrase_loss="lr_sib", per_position=False)
    assert near > 1 > 0.1 > far
    near, far = losses(phrase_loss="synclm")
    assert near < far <= 0


def test_dividing_by_the_length_makes_the_loss_nearly_flat() -> None:
    """exp(JSD / (tau L)) stays below exp(ln 2 / (tau L)): at 20 positions that is sqrt 2."""
    one_hot = torch.eye(20)
    weights_SML = torch.stack([one_hot[[0, 0, *[1] * 10]], one_hot[[0, 1, *[0] * 10]]])
    real_SK, real_SL = torch.ones(2, 10, dtype=torch.bool), torch.ones(2, 20, dtype=torch.bool)
    for form in ("lr_sib", "as_published"):
        divided = objective(phrase_loss=form, per_position=True)
        losses_S = divided.losses(weights_SML, real_SK, real_SL)
        assert (losses_S - math.log(11)).abs().max() < 0.36
    whole_S = objective(per_position=False).losses(weights_SML, real_SK, real_SL)
    assert (whole_S - math.log(11)).abs().min() > 2


@pytest.mark.parametrize("form", FORMS)
def test_where_all_attend_alike_the_loss_is_that_of_guessing(make_batch, form) -> None:
    batch = with_samples(make_batch(), "phrase(probability=1)")
    rows = rows_of(torch.zeros(*batch.input_ids_BL.shape, WIDTH), batch)
    counts = [len(negatives) for _, negatives in samples_of(batch, "phrase", "negatives")]
    guessing = sum(math.log(1 + count) for count in counts) / len(counts)
    sign = -1 if form == "synclm" else 1
    assert float(loss_of(batch, rows, phrase_loss=form)) == pytest.approx(sign * guessing, rel=1e-5)


def test_the_loss_of_synclm_is_never_above_0_and_has_a_floor() -> None:
    """ln(1/2) where one negative is as far as the positive; at the best, 10 of them are far."""
    released = objective(phrase_loss="synclm")
    equal = released.losses(*toy(FAR, FAR))
    assert float(equal) == pytest.approx(math.log(0.5), abs=1e-5)
    one_hot = torch.eye(12)
    weights_SML = one_hot[[0, 0, *range(1, 11)]][None]
    real_SK, real_SL = torch.ones(1, 10, dtype=torch.bool), torch.ones(1, 12, dtype=torch.bool)
    best = released.losses(weights_SML, real_SK, real_SL)
    assert float(best) == pytest.approx(-math.log1p(10 * math.exp(10 * math.log(2))), abs=1e-3)


def test_only_the_rows_of_samples_are_computed(make_batch, monkeypatch) -> None:
    batch = with_samples(make_batch((12, 40)), "phrase(negatives=2, max_samples=1)")
    rows, asked = rows_of(states_of(batch), batch), []
    computed = rows.weights
    monkeypatch.setattr(rows, "weights", lambda at, **how: asked.append(at) or computed(at, **how))
    loss_of(batch, rows)
    (positions_BR,) = asked
    members = [
        {anchor, positive, *negatives}
        for _, anchor, positive, negatives in samples_of(
            batch, "phrase", "anchor", "positive", "negatives"
        )
    ]
    assert positions_BR.shape == (2, max(map(len, members)))
    assert positions_BR.shape[1] <= 4


def test_the_gradient_reaches_the_pieces_of_samples_alone(make_batch) -> None:
    """Queries of pieces that no sample names have none."""
    batch = with_samples(make_batch((12, 40)), "phrase(negatives=2, max_samples=1)")
    B, L = batch.input_ids_BL.shape
    query, key = (torch.randn(B, 2, L, 4, requires_grad=True) for _ in range(2))
    rows = AttentionRows()
    rows.record(LayerAttention(query, key, batch.attention_mask_BL[:, None, None]))
    loss_of(batch, rows).backward()
    named = torch.zeros(B, L, dtype=torch.bool)
    for example, anchor, positive, negatives in samples_of(
        batch, "phrase", "anchor", "positive", "negatives"
    ):
        named[example, [anchor, positive, *negatives]] = True
    assert torch.equal(query.grad.abs().sum((1, 3)) > 0, named)
    assert not key.grad[(~batch.attention_mask_BL)[:, None].expand(B, 2, L)].any()


def test_far_logits_have_a_finite_loss_and_gradient(make_batch) -> None:
    """Attention to one piece alone is 0 elsewhere, and 0 ln 0 is 0."""
    batch = with_samples(make_batch(), "phrase(probability=1)")
    for form in FORMS:
        states = states_of(batch, scale=200.0).requires_grad_()
        loss = loss_of(batch, rows_of(states, batch), phrase_loss=form)
        loss.backward()
        assert loss.isfinite()
        assert states.grad.isfinite().all()


@pytest.mark.parametrize("form", FORMS)
def test_without_samples_the_loss_is_0_and_has_a_gradient(make_batch, form) -> None:
    batch = with_samples(make_batch((3, 3)), "phrase")
    assert not len(batch.extra("phrase_anchor"))
    states = states_of(batch).requires_grad_()
    one = objective(phrase_loss=form)
    loss = one(SyntaxEncoding(attention_rows=rows_of(states, batch)), batch)
    loss.backward()
    assert loss.item() == 0
    assert not states.grad.any()


def test_weights_after_dropout_are_drawn_in_training_alone(make_batch) -> None:
    batch = with_samples(make_batch(), "phrase(probability=1)")
    rows = rows_of(states_of(batch), batch, dropout=0.5)
    one = objective(attention="after_dropout")
    encoding = SyntaxEncoding(attention_rows=rows)
    assert torch.equal(one.eval()(encoding, batch), loss_of(batch, rows))
    assert one.train()(encoding, batch) != one.eval()(encoding, batch)
    assert torch.equal(objective().train()(encoding, batch), loss_of(batch, rows))
