"""Objectives of streams: samples reach them, weights are of a stream, a critic learns alone."""

from __future__ import annotations

import json

import pytest
import torch

from featurestore import open_store
from syntax.errors import SpecError
from tests.trainer.everything import recipe_for
from tests.trainer.runs import reported
from tests.trainer.sampled import CriticOptions, FirstOptions, NearOptions
from tests.trainer.treebank import DOG, DU, GO, append_treebank
from tests.trainer.treebank import recipe as treebank_recipe
from trainer.loop import Run, train
from trainer.objectives import OBJECTIVES, ObjectiveEntry
from trainer.options import Recipe
from trainer.options.settings import with_settings
from trainer.schedule import check_trained, new_optimizers


@pytest.fixture(autouse=True)
def objectives(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, options, module in (
        ("near.v1", NearOptions, "Near"),
        ("critic.v1", CriticOptions, "Critic"),
        ("first.v1", FirstOptions, "First"),
    ):
        entry = ObjectiveEntry(options, f"tests.trainer.sampled:{module}")
        monkeypatch.setitem(OBJECTIVES._items, name, entry)


NEAR = 'objectives=[{"name": "near.v1", "weight": 0.5}]'


@pytest.mark.slow_cases
@pytest.mark.parametrize("model", ["syntax_bert.v1", "sla.v1"])
@pytest.mark.parametrize("matrices", ["host", "device"])
def test_an_objective_reads_samples_of_any_encoder(
    store, small_recipe, tmp_path, model, matrices
) -> None:
    settings = (f"model.name={model}", f"data.matrices={matrices}", "samplers=phrase(negatives=3)")
    recipe = small_recipe(
        *settings, NEAR, "max_steps=12", "joint_root=false", "separator_edge=none"
    )
    run, reports = reported(recipe, store, tmp_path)
    assert all(report.losses["near.v1"] > 0 for report in reports)
    last = reports[-1].losses
    further = sum(one.weight * last.get(one.name, 0.0) for one in run.recipe.objectives)
    assert last["loss"] == pytest.approx(last["task"] + further, rel=1e-5)


def test_an_objective_without_its_samples_says_what_is_missing(
    store, small_recipe, tmp_path
) -> None:
    with pytest.raises(SpecError, match="the stream gave no 'phrase_"):
        train(small_recipe(NEAR), store, tmp_path)


def with_critic(*settings: str) -> Recipe:
    """A task, and beside each of its steps a batch of another stream that only a critic reads."""
    recipe = recipe_for("sequence_classification.v1", "max_steps=4", "warmup_steps=0")
    other = {"name": "other", "data": recipe.to_json()["data"], "share": 1, "joins": True}
    critic = {"name": "critic.v1"}
    lists = (
        f"objectives={json.dumps([critic])}",
        f"streams={json.dumps([{**other, 'objectives': [{**critic, 'weight': 2.0}]}])}",
    )
    return with_settings(recipe, [*lists, *settings])


CRITIC = (
    'optimizers=[{"name": "main"}, {"name": "critic", "parameters": ["objectives"], '
    '"objectives": ["critic"], "learning_rate": 0.01, "schedule": "constant"}]'
)


def trained(store, output, *settings: str) -> tuple[Run, dict[str, torch.Tensor]]:
    run = train(with_critic(*settings), store, output)
    return run, run.accelerator.unwrap_model(run.model).state_dict()


def test_a_critic_learns_by_its_own_loss_and_teaches_the_encoder_nothing(
    everything, tmp_path
) -> None:
    run, learned = trained(everything, tmp_path / "a", CRITIC)
    _, other = trained(everything, tmp_path / "b", CRITIC, "objectives.critic.weight=50")
    encoder = [name for name in learned if name.startswith(("encoder", "head"))]
    critic = [name for name in learned if "output" in name and name.startswith("objectives")]
    assert critic
    assert all(torch.equal(learned[name], other[name]) for name in encoder)
    assert not all(torch.equal(learned[name], other[name]) for name in critic)
    assert run.optimizers[1].optimizer.param_groups[0]["lr"] == 0.01
    _, joint = trained(everything, tmp_path / "c")
    assert not all(torch.equal(learned[name], joint[name]) for name in encoder)


def test_a_stream_without_a_task_has_the_loss_of_its_objectives(everything, tmp_path) -> None:
    run, (report, *_) = reported(with_critic(), everything, tmp_path)
    losses = report.losses
    assert "other/task" not in losses
    assert losses["other/loss"] == pytest.approx(2 * losses["other/critic.v1"], rel=1e-6)
    assert losses["loss"] == pytest.approx(
        losses["task"] + losses["critic.v1"] + losses["other/loss"], rel=1e-5
    )
    assert "streams" not in run.progress.evaluations[-1].scores


def test_streams_that_share_an_objective_must_agree_on_its_options(everything, tmp_path) -> None:
    recipe = with_critic(
        'objectives=[{"name": "tree_depth.v1", "rank": 4}]',
        'streams.other.objectives=[{"name": "tree_depth.v1", "rank": 8}]',
    )
    with pytest.raises(SpecError, match=r"has the objective tree_depth\.v1 with other options"):
        train(recipe, everything, tmp_path)


def test_streams_whose_data_have_other_tags_are_told_to_name_them(tmp_path, tokenizer) -> None:
    with open_store(str(tmp_path / "store")) as store:
        for split in ("train", "dev"):
            append_treebank(store, tokenizer, split, (DOG, GO))
        append_treebank(store, tokenizer, "train", (DU, DU), name="other")
        tags = {"name": "xpos_tagging.v1"}
        recipe = treebank_recipe("task.name=trees.v1", f"objectives={json.dumps([tags])}")
        data = {**recipe.to_json()["data"], "dataset": "other"}
        stream = {"name": "french", "data": data, "share": 0.5, "objectives": [tags]}
        recipe = with_settings(recipe, [f"streams={json.dumps([stream])}"])
        advice = r"\(names\).* Set streams\.french\.objectives\.xpos_tagging\.names and that of"
        with pytest.raises(SpecError, match=advice):
            train(recipe, store, tmp_path / "run")
        names = ["objectives.xpos_tagging.names=DT,NN,VB,VBZ,D,N,P,V"]
        names += [f"streams.french.{names[0]}"]
        run = train(with_settings(recipe, names), store, tmp_path / "named")
        assert run.finished


def optimizers(*given: dict[str, object]) -> str:
    return f"optimizers={json.dumps([{'name': 'main'}, *given])}"


BOTH = 'objectives=[{"name": "critic.v1"}, {"name": "tree_depth.v1"}]'
OF_ALL = {"name": "critic", "parameters": ["objectives"], "objectives": ["critic"]}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ((BOTH, optimizers(OF_ALL)), r"critic trains the weights of tree_depth\.v1, whose loss"),
        (
            (optimizers({**OF_ALL, "parameters": ["encoder"]}),),
            r"optimizers\.main trains the weights of critic\.v1, whose loss",
        ),
        (
            (optimizers({**OF_ALL, "parameters": ["objectives", "head"]}),),
            "trains weights of a head, and learns only by critic",
        ),
        (
            (
                'objectives=[{"name": "critic.v1", "weight": 0}, {"name": "tree_depth.v1"}]',
                'streams.other.objectives=[{"name": "tree_depth.v1"}]',
                optimizers(OF_ALL),
            ),
            "learns by critic, and the model has no such objective",
        ),
    ],
)
def test_an_optimizer_that_its_losses_do_not_reach_is_refused(
    everything, tmp_path, settings, message
) -> None:
    with pytest.raises(SpecError, match=message):
        train(with_critic(*settings), everything, tmp_path)


def test_an_optimizer_of_weights_that_stay_as_they_are_is_refused() -> None:
    model = torch.nn.ModuleDict({"encoder": torch.nn.Linear(2, 2), "head": torch.nn.Linear(2, 2)})
    model["encoder"].requires_grad_(False)
    model.objectives, model.heads = torch.nn.ModuleList(), torch.nn.ModuleDict()
    recipe = with_settings(
        recipe_for("sequence_classification.v1"),
        [optimizers({"name": "slow", "parameters": ["encoder"]})],
    )
    with pytest.raises(SpecError, match=r"optimizers\.slow trains no weights"):
        check_trained(model, new_optimizers(model, recipe))


@pytest.mark.parametrize("given", ["[]", '[{"name": "critic.v1", "weight": 0}]'])
def test_a_stream_that_has_nothing_to_learn_is_refused(everything, tmp_path, given) -> None:
    with pytest.raises(SpecError, match="the stream other has neither a task nor an objective"):
        train(with_critic(f"streams.other.objectives={given}"), everything, tmp_path)


def test_an_objective_without_weight_needs_no_samples(store, small_recipe, tmp_path) -> None:
    recipe = small_recipe(NEAR, "objectives.near.weight=0", "max_steps=1")
    assert len(train(recipe, store, tmp_path).progress.losses) == 1


FIRST = 'objectives=[{"name": "first.v1", "weight": 100}]'


@pytest.mark.parametrize("model", ["syntax_bert.v1", "sla.v1", "sgnet.v1"])
def test_an_objective_reads_the_attention_of_any_encoder_and_teaches_it(
    store, small_recipe, tmp_path, model
) -> None:
    own = ("joint_root=false", "separator_edge=none", "max_steps=12", "model.attention=eager")
    recipe = small_recipe(f"model.name={model}", FIRST, *own)
    _, reports = reported(recipe, store, tmp_path)
    paid = [report.losses["first.v1"] for report in reports]
    assert 0 < paid[-1] < 0.9 * paid[0] < 1


def test_an_objective_of_attention_weights_needs_the_attention_that_has_some(
    store, small_recipe, tmp_path
) -> None:
    with pytest.raises(SpecError, match=r"reads attention weights; set model\.attention=eager"):
        train(small_recipe(FIRST), store, tmp_path)
