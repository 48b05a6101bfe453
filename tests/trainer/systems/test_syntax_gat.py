"""The graph encoder by itself, and in the whole model afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from syntax.errors import ModelLoadError, SpecError
from tests.trainer.runs import finished
from trainer.evaluation.transfer import evaluate_run
from trainer.loop import train
from trainer.options import SyntaxBertOptions
from trainer.recipes import RECIPES
from trainer.requirements import Requirements
from trainer.systems.syntax_mbert.loading import load_graph_encoder


def objectives(weight: float) -> tuple[str, ...]:
    return tuple(f"objectives.{name}.weight={weight}" for name in ("tree_distance", "tree_depth"))


SIZES = ("gat_layers=2", "gat_heads=2", "gat_head_size=16", "max_distance=2")
ALONE = ("model.name=syntax_gat.v1", "task.name=trees.v1", *SIZES, *objectives(1))


@pytest.fixture
def pretrained(store, small_recipe, tmp_path):
    """A run on the trees of the sample, of whatever language."""
    run = finished(small_recipe(*ALONE, "max_steps=20", "lang=en"), store, tmp_path / "trees")
    return run, tmp_path / "trees"


def test_the_recipe_trains_on_all_languages_without_labels(store, small_recipe, tmp_path) -> None:
    recipe = RECIPES["gat-ud"]()
    assert (recipe.data.lang, recipe.task.name) == ("*", "trees.v1")
    run = train(small_recipe(*ALONE, "data.train_split=dev", "lang=*"), store, tmp_path)
    assert {lang for _, lang in run.data.dataset.parts} == {"de", "en", "fr"}
    some = train(small_recipe(*ALONE, "data.train_split=dev", "lang=de,fr"), store, tmp_path / "2")
    assert {lang for _, lang in some.data.dataset.parts} == {"de", "fr"}
    assert len(some.data.dataset) == 96


def test_it_learns_trees_and_leaves_the_embeddings_alone(pretrained, store, tmp_path) -> None:
    run, folder = pretrained
    losses = run.progress.losses
    assert sum(losses[-3:]) < sum(losses[:3])
    assert run.model.encoder.embeddings.weight.grad is None
    scores = run.progress.best.scores
    assert scores["structure"] == -scores["loss"]
    assert scores["loss"] == pytest.approx(sum(scores["objectives"].values()))
    again = evaluate_run(folder, store, "dev", ["en"]).scores["en"]
    assert again.loss == pytest.approx(scores["loss"])


@pytest.mark.parametrize("frozen", ["true", "false"])
def test_a_task_begins_with_its_weights(pretrained, store, small_recipe, tmp_path, frozen) -> None:
    run, folder = pretrained
    settings = (*SIZES, f"gat_from={folder}", f"freeze_gat={frozen}", "max_steps=3")
    task = train(small_recipe(*settings), store, tmp_path / "task")
    before, after = run.model.encoder.gat.state_dict(), task.model.encoder.gat.state_dict()
    same = [torch.equal(before[name], after[name]) for name in before]
    assert all(same) if frozen == "true" else not any(same)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("gat_heads=4", "model.gat_heads=2"),
        ("gat=as_released", "model.gat=as_published"),
        ("seed=1", "other word embeddings than those of parsebank-tiny"),  # drawn anew
        ("separator_edge=as_released", "data.separator_edge 'root', and the recipe has 'last_p"),
        ("policy=broadcast", "data.policy 'attach', and the recipe has 'broadcast'"),
    ],
)
def test_another_graph_encoder_is_refused(
    pretrained, store, small_recipe, tmp_path, setting, message
) -> None:
    settings = (*SIZES, f"gat_from={pretrained[1]}", setting)
    with pytest.raises(SpecError, match=message):
        train(small_recipe(*settings), store, tmp_path / "task")


def test_a_graph_encoder_of_another_tokenizer_is_refused(pretrained) -> None:
    run, folder = pretrained
    theirs = Requirements.from_json(run.model.config.requires)
    ours = replace(theirs, tokenizer="ab" * 16, tokenizer_name="another")
    options = replace(run.recipe.model, gat_from=str(folder))
    with pytest.raises(SpecError, match=r"pieces of parsebank-wordpiece-en .* are of another"):
        load_graph_encoder(run.model.encoder.gat, run.model.encoder.embeddings, options, ours)


def test_a_model_that_reads_a_graph_encoder_is_none(store, small_recipe, tmp_path) -> None:
    run = train(small_recipe(*SIZES, "max_steps=1"), store, tmp_path)
    with pytest.raises(SpecError, match="is no graph encoder by itself"):
        train(small_recipe(*SIZES, f"gat_from={run.output}"), store, tmp_path / "task")


def test_a_folder_without_one_is_refused(store, small_recipe, tmp_path) -> None:
    with pytest.raises(ModelLoadError, match="cannot load the graph encoder"):
        train(small_recipe(f"gat_from={tmp_path}"), store, tmp_path / "task")
    with pytest.raises(ModelLoadError, match=r"model\.gat_from is nowhere, and there is no such"):
        train(small_recipe("gat_from=nowhere"), store, tmp_path / "task")
    with pytest.raises(SpecError, match=r"needs model\.gat_from"):
        SyntaxBertOptions(freeze_gat=True)


def test_a_model_without_losses_cannot_learn_trees(store, small_recipe, tmp_path) -> None:
    settings = ("task.name=trees.v1", *objectives(0))
    with pytest.raises(SpecError, match=r"no objectives that syntax_bert\.v1 learns"):
        train(small_recipe(*settings), store, tmp_path)
