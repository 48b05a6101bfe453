from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    BertConfig,
)

from syntax.errors import SpecError
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxForSequenceClassification, SyntaxModel
from trainer.nn.attention import EAGER, SDPA
from trainer.systems.syntax_mbert.encoder import SyntaxBertEncoder

OPTIONS = {"name": "syntax_bert.v1", "gat_layers": 2, "gat_heads": 2, "gat_head_size": 4}
TASK = {"name": "sequence_classification.v1"}


def config(
    encoder, attention=SDPA, requires=None, label="label", weight=0.0, **options
) -> SyntaxConfig:
    return SyntaxConfig(
        encoder=encoder.to_dict(),
        attention=attention,
        model={**OPTIONS, **options},
        task={**TASK, "label": label},
        classes={label: ["entailment", "neutral", "contradiction"]},
        requires=requires,
        objectives=[
            {"name": name, "weight": weight, "states": "syntax"}
            for name in ("tree_distance.v1", "tree_depth.v1")
        ],
    )


def encoder_of(encoder, **settings) -> SyntaxBertEncoder:
    """An encoder with the initial weights that a whole model gives it."""
    return classifier(encoder, **settings).encoder


def classifier(encoder, **settings) -> SyntaxForSequenceClassification:
    torch.manual_seed(3)
    return SyntaxForSequenceClassification(config(encoder, **settings)).eval()


def logits(model: SyntaxModel, batch) -> torch.Tensor:
    return next(iter(model(batch).logits.values()))


def real(states: torch.Tensor, batch) -> torch.Tensor:
    return states[batch.attention_mask_BL]


def stock_states(model: SyntaxBertEncoder, batch) -> torch.Tensor:
    """The states that transformers' own encoder gives with the same weights."""
    config = model.encoder.config
    implementation = {SDPA: "sdpa", EAGER: "eager"}[config._attn_implementation]
    stock = AutoModel.from_config(
        type(config).from_dict(config.to_dict()),
        attn_implementation=implementation,
        add_pooling_layer=False,
    ).eval()
    stock.load_state_dict(model.encoder.state_dict())
    output = stock(batch.input_ids_BL, attention_mask=batch.attention_mask_BL.long())
    return real(output.last_hidden_state, batch)


@torch.no_grad()
def test_with_syntax_off_the_encoder_is_exactly_the_stock_one(encoder_config, batch) -> None:
    model = encoder_of(encoder_config, use_syntax=False)
    assert torch.equal(real(model(batch).last_hidden_state, batch), stock_states(model, batch))
    assert model.gat is None
    assert model(batch).syntax_states is None


@pytest.mark.parametrize("attention", [SDPA, EAGER])
@torch.no_grad()
def test_biases_of_zero_equal_the_stock_encoder(encoder_config, batch, attention) -> None:
    model = encoder_of(encoder_config, attention=attention)
    for weight in model.bias.parameters():
        weight.zero_()
    states = real(model(batch).last_hidden_state, batch)
    assert (states - stock_states(model, batch)).abs().max() <= 1e-6


@torch.no_grad()
def test_the_tree_changes_the_logits(encoder_config, make_batch) -> None:
    model, batch = classifier(encoder_config, max_distance=1), make_batch()
    moved = make_batch()
    moved.distances()[0, 3, :9] = moved.distances()[0, :9, 3] = 5
    changed = (logits(model, batch) != logits(model, moved)).any(1)
    assert changed.tolist() == [True, False, False]


def test_published_syntax_biases_queries_and_keys_released_keys_and_values(
    bert_config, batch
) -> None:
    published = encoder_of(bert_config).bias(torch.randn(3, 12, 8))[0]
    released = encoder_of(bert_config, attention_bias="as_released")
    released_layer = released.bias(torch.randn(3, 12, 8))[0]
    assert published.query_BKLD is not None
    assert published.key_BKLD is not None
    assert published.value_BKLD is None
    assert released_layer.query_BKLD is None
    assert released_layer.key_BKLD is not None
    assert released_layer.value_BKLD is not None
    assert published.key_BKLD.shape == (3, 1, 12, 4)


@pytest.mark.parametrize("variant", ["as_published", "as_released"])
def test_only_chosen_heads_of_chosen_layers_get_a_gradient(encoder_config, batch, variant) -> None:
    model = classifier(encoder_config, syntax_heads=2, syntax_layers=[0, 2], attention_bias=variant)
    model(batch).loss.backward()
    bias = model.encoder.bias
    assert set(bias.key) == {"0", "2"}
    for projection in (*bias.key.values(), *bias.other.values()):
        per_head = projection.weight.grad.unflatten(0, (2, 4)).abs().amax((1, 2))
        assert (per_head > 0).all()


@torch.no_grad()
def test_only_chosen_heads_of_chosen_layers_attend_otherwise(bert_config, batch) -> None:
    model = encoder_of(bert_config, syntax_layers=[1], attention=EAGER)
    biased = model(batch, output_attentions=True).attentions
    for weight in model.bias.parameters():
        weight.zero_()
    plain = model(batch, output_attentions=True).attentions
    changed = [
        (one - two).abs().amax((0, 2, 3)) > 0 for one, two in zip(biased, plain, strict=True)
    ]
    assert changed[0].tolist() == [False] * 4
    assert changed[1].tolist() == [True, False, False, False]


@pytest.mark.parametrize("variant", ["as_published", "as_released"])
@torch.no_grad()
def test_padding_and_company_never_change_an_examples_logits(
    encoder_config, make_batch, take_row, variant
) -> None:
    batch = make_batch(roots=0.2, pad=3)
    model = classifier(encoder_config, gat=variant, attention_bias=variant)
    together = logits(model, batch)
    for row in range(len(batch)):
        alone = logits(model, take_row(batch, row))[0]
        assert (alone - together[row]).abs().max() < 1e-5


def test_training_adds_the_weighted_objectives_and_evaluation_never_does(
    bert_config, batch
) -> None:
    """Fails on the release, which adds them to the loss that it reports on dev and test."""
    bert_config.hidden_dropout_prob = bert_config.attention_probs_dropout_prob = 0.0
    model = classifier(bert_config, weight=0.5, gat_dropout=0.0, dropout=0.0)
    with torch.no_grad():
        evaluated, trained = model(batch), model.train()(batch)
    assert float(evaluated.loss) == float(evaluated.task_loss)
    parts = sum(float(part) for part in trained.objectives.values())
    assert set(trained.objectives) == {"tree_distance.v1", "tree_depth.v1"}
    assert float(trained.loss) == pytest.approx(float(trained.task_loss) + 0.5 * parts)


@pytest.mark.parametrize("settings", [{"weight": 0.0}, {"use_syntax": False}])
def test_without_weight_or_syntax_no_objective_is_built(bert_config, batch, settings) -> None:
    model = classifier(bert_config, **{"weight": 1.0, **settings}).train()
    output = model(batch)
    assert len(model.objectives) == 0
    assert float(output.loss.detach()) == float(output.task_loss.detach())


def test_examples_without_a_label_take_no_part_in_the_loss(bert_config, batch, take_row) -> None:
    model = classifier(bert_config)
    batch.labels["label"][1:] = -1
    with torch.no_grad():
        together, alone = model(batch).loss, model(take_row(batch, 0)).loss
    assert float(together) == pytest.approx(float(alone))


def test_a_batch_without_the_label_gets_logits_alone(bert_config, batch) -> None:
    output = classifier(bert_config, label="entailed")(batch)
    assert output.loss is None
    assert output.logits["entailed"].shape == (3, 3)


@pytest.mark.parametrize("attention", [SDPA, EAGER])
@torch.no_grad()
def test_a_saved_model_comes_back_the_same(
    tmp_path: Path, encoder_config, batch, attention
) -> None:
    model = classifier(
        encoder_config,
        attention=attention,
        weight=0.5,
        gat="as_released",
        requires={"tokenizer": "a"},
    )
    model.save_pretrained(tmp_path)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    assert isinstance(loaded, SyntaxForSequenceClassification)
    assert loaded.encoder.encoder.config._attn_implementation == attention
    assert loaded.config.requires == {"tokenizer": "a"}
    ours, theirs = model.train(False)(batch), loaded(batch)
    assert torch.equal(ours.logits["label"], theirs.logits["label"])
    assert list(ours.objectives) == list(theirs.objectives)
    assert all(
        torch.equal(ours.objectives[name], theirs.objectives[name]) for name in ours.objectives
    )


def test_the_auto_classes_know_the_model(tmp_path: Path, bert_config) -> None:
    saved = config(bert_config)
    saved.save_pretrained(tmp_path)
    assert isinstance(AutoConfig.from_pretrained(tmp_path), SyntaxConfig)
    assert isinstance(AutoModel.from_config(saved), SyntaxModel)


def test_attention_that_would_ignore_syntax_is_refused_at_the_first_batch(
    bert_config, batch
) -> None:
    encoder = AutoModel.from_config(bert_config, add_pooling_layer=False)
    with pytest.raises(SpecError, match="ignores syntax"):
        SyntaxModel(config(bert_config), encoder)(batch)


def test_a_pretrained_encoder_keeps_its_weights(tmp_path: Path, bert_config) -> None:
    stock = AutoModel.from_config(bert_config)
    stock.save_pretrained(tmp_path)
    encoder = AutoModel.from_pretrained(tmp_path, attn_implementation=SDPA, add_pooling_layer=False)
    model = SyntaxForSequenceClassification(config(bert_config), encoder)
    ours = model.encoder.encoder.state_dict()
    assert all(torch.equal(weight, stock.state_dict()[name]) for name, weight in ours.items())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gat": "as_printed"}, "gat cannot be 'as_printed'"),
        ({"syntax_heads": 5}, "syntax_heads is 5"),
        ({"syntax_heads": 0}, "syntax_heads is 0"),
        ({"syntax_layers": [3]}, "syntax_layers is 3"),
        ({"weight": -1.0}, "tree_distance.v1.weight is -1.0"),
        ({"max_distance": -1}, "max_distance is -1"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(bert_config, settings, message) -> None:
    with pytest.raises(SpecError, match=message):
        classifier(bert_config, **settings)


@pytest.mark.parametrize("variant", ["as_published", "as_released"])
def test_a_model_learns_sixteen_examples_by_heart(make_batch, variant) -> None:
    encoder = BertConfig(
        vocab_size=60,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
    )
    batch = make_batch(sizes=(8,) * 16)
    model = classifier(encoder, gat=variant, attention_bias=variant, weight=0.1).train()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.0)
    for _ in range(60):
        optimizer.zero_grad()
        model(batch).loss.backward()
        optimizer.step()
    assert torch.equal(logits(model.eval(), batch).argmax(1), batch.labels["label"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_compiled_model_agrees_with_the_eager_one(bert_config, batch) -> None:
    model = classifier(bert_config, weight=0.5)
    torch.compiler.reset()  # What other tests compiled counts towards a limit of the process.
    compiled = torch.compile(model, fullgraph=True)
    assert (logits(compiled, batch) - logits(model, batch)).abs().max() < 1e-5
