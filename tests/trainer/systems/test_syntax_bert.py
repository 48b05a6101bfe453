from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
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


def test_attention_that_would_ignore_syntax_is_refused_at_the_first_batch(
    bert_config, batch
) -> None:
    encoder = AutoModel.from_config(bert_config, add_pooling_layer=False)
    with pytest.raises(SpecError, match="ignores syntax"):
        SyntaxModel(config(bert_config), encoder)(batch)


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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_compiled_model_agrees_with_the_eager_one(bert_config, batch) -> None:
    model = classifier(bert_config, weight=0.5)
    torch.compiler.reset()  # What other tests compiled counts towards a limit of the process.
    compiled = torch.compile(model, fullgraph=True)
    assert (logits(compiled, batch) - logits(model, batch)).abs().max() < 1e-5
