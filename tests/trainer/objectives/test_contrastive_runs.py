"""Runs that learn by contrasts of phrases and trees, on several encoders."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from syntax.errors import SpecError
from tests.trainer.contrasted import learned, with_samples
from tests.trainer.runs import reported
from trainer.loop import train
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.nn.attention import EAGER, SDPA
from trainer.options import Recipe
from trainer.options.settings import described, with_settings
from trainer.progress import outcomes_of
from trainer.recipes import RECIPES

OBJECTIVES = 'objectives=[{"name": "phrase.v1"}, {"name": "tree.v1", "projection": true}]'
SAMPLERS = "samplers=phrase(way=lr_sib),tree(way=lr_sib)"
TREES = ("joint_root=false", "separator_edge=none", "policy=attach")


def recipe_of(make, model: str, *settings: str) -> Recipe:
    return make(f"model.name={model}", OBJECTIVES, SAMPLERS, *TREES, *settings)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["stock.v1", "sla.v1", "syntax_bert.v1", "sgnet.v1"])
def test_any_encoder_learns_by_contrasts(store, small_recipe, tmp_path, model) -> None:
    _, reports = reported(recipe_of(small_recipe, model, "max_steps=4"), store, tmp_path)
    found = [report.losses for report in reports]
    assert all(losses["phrase.v1"] > 0 and losses["tree.v1"] > 0 for losses in found)
    last = found[-1]
    total = last["task"] + last["phrase.v1"] + last["tree.v1"]
    assert last["loss"] == pytest.approx(total, rel=1e-5)


def test_runs_without_a_task_draw_the_same_twice(store, small_recipe, tmp_path) -> None:
    """Samples, and which weights are dropped."""
    settings = ("task.name=trees.v1", "max_steps=6", "warmup_steps=0", "bucket=false")
    dropped = "objectives.phrase.attention=after_dropout"
    recipe = recipe_of(small_recipe, "stock.v1", *settings, dropped)
    one, other = (reported(recipe, store, tmp_path / name)[1] for name in ("one", "other"))
    assert len(one) == 6
    assert [report.losses for report in one] == [report.losses for report in other]


def model_of(bert_config, name: str = "stock.v1", attention: str = SDPA) -> SyntaxModel:
    objectives = [{"name": "phrase.v1"}, {"name": "tree.v1", "projection": True}]
    config = SyntaxConfig(
        encoder=bert_config.to_dict(),
        attention=attention,
        model={"name": name},
        task={"name": "trees.v1"},
        objectives=objectives,
    )
    return SyntaxModel(config)


def test_a_batch_without_samples_has_the_gradients_that_processes_expect(
    make_batch, bert_config
) -> None:
    """A 0 for each weight that another process may have a gradient of."""
    given = []
    for sizes in ((12, 9), (3, 3)):
        batch, model = with_samples(make_batch(sizes), "phrase", "tree"), model_of(bert_config)
        model.train()(batch).loss.backward()
        given.append({name: one.grad for name, one in model.named_parameters()})
    some, none = given
    assert {name for name, one in some.items() if one is None} == {
        name for name, one in none.items() if one is None
    }
    assert any(one.any() for one in some.values() if one is not None)
    assert not any(one.any() for one in none.values() if one is not None)


@pytest.mark.parametrize("name", ["phrase.v1", "tree.v1"])
def test_each_contrast_can_be_learned(make_batch, bert_config, name) -> None:
    bert_config.hidden_dropout_prob = bert_config.attention_probs_dropout_prob = 0.0
    batch, model = with_samples(make_batch((12, 9)), "phrase", "tree"), model_of(bert_config)
    first, last = learned(model.train(), batch, name)
    assert last < 0.7 * first


def test_losses_are_of_the_same_pass_in_eager_and_fused_attention(make_batch, bert_config) -> None:
    batch, losses = with_samples(make_batch(), "phrase", "tree"), []
    for attention in (SDPA, EAGER):
        torch.manual_seed(2)
        model = model_of(bert_config, attention=attention)
        losses.append({name: one.item() for name, one in model.eval()(batch).objectives.items()})
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


def test_examples_without_samples_are_counted(make_batch) -> None:
    batch = with_samples(make_batch((12, 3, 9)), "phrase(probability=1)", "tree")
    arrays = {name: array.numpy() for name, array in batch.extras.items()}
    assert outcomes_of(arrays) == {
        "batch_without_masked_piece": 0,
        "example_without_phrase_samples": 1,
        "example_without_tree_samples": 1,
    }


def test_an_encoder_that_attends_to_nothing_is_refused(bert_config) -> None:
    with pytest.raises(SpecError, match=r"phrase\.v1 reads attention_rows, which frozen\.v1"):
        model_of(bert_config, "frozen.v1")


def test_the_released_runs_differ_where_the_guide_says() -> None:
    published = RECIPES["synclm"]()
    before = {key: value for key, _, value in described(published)}
    changed = {
        name: {
            key: value
            for key, _, value in described(RECIPES[f"synclm-{name}"]())
            if before.get(key) != value
        }
        for name in ("as-released", "lr-sib")
    }
    assert changed["as-released"] == {
        "data.samplers": (
            "phrase(way=synclm, max_samples=1024)",
            "tree(way=synclm, max_samples=512, negatives=30)",
        ),
        "objectives.phrase.phrase_loss": "synclm",
        "objectives.phrase.attention": "after_dropout",
        "objectives.tree.tree_root": "in",
        "objectives.tree.projection": True,
    }
    assert changed["lr-sib"] == {
        "data.samplers": ("phrase(way=lr_sib, max_height=1)", "tree(way=lr_sib)"),
        "objectives.phrase.phrase_loss": "lr_sib",
        "objectives.phrase.attention": "after_dropout",
        "objectives.tree.tree_topk": "released",
    }
    assert not published.data.joint_root
    assert published.data.policy == "attach"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["synclm", "synclm-as-released", "synclm-lr-sib"])
def test_every_recipe_runs(store, tmp_path, name) -> None:
    """With the bundled encoder and tokenizer, on sentences of the sample."""
    short = ("max_steps=4", "batch_size=4", "log_every=1", "evaluate_every=4", "threads=1")
    small = ("encoder=parsebank-tiny", "weights=random", "max_length=64")
    data = ("dataset=sample", "tokenizer=parsebank-wordpiece-en")
    recipe = with_settings(RECIPES[name](), [*short, *small, *data])
    run = train(replace(recipe, name="small"), store, tmp_path)
    assert len(run.progress.losses) == 4
    assert all(torch.tensor(run.progress.losses).isfinite())
