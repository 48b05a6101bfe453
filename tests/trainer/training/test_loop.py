from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModel

from featurestore import open_store
from syntax.errors import ModelLoadError, SpecError, UnknownDatasetError, UnknownNameError
from tests.trainer.recorded import launched
from tests.trainer.runs import resumed
from trainer.data import device_batches, open_source, warn_of_data
from trainer.loop import DivergedError, Run, train
from trainer.options import Recipe, TrainingOptions
from trainer.options.settings import with_settings
from trainer.progress import Evaluation, Report
from trainer.recipes import RECIPES
from trainer.report import result_of
from trainer.results import read_result
from trainer.schedule import learning_rate
from trainer.systems.syntax_mbert.options import SWITCHES

MakeRecipe = Callable[..., Recipe]


def losses(run: Run) -> list[float]:
    assert len(run.progress.losses) == run.progress.step
    return run.progress.losses


def weights(run: Run) -> list[torch.Tensor]:
    return list(run.accelerator.unwrap_model(run.model).state_dict().values())


def test_the_loss_goes_down_and_observers_are_told(store, small_recipe, tmp_path) -> None:
    events: list[Report | Evaluation] = []
    recipe = small_recipe(
        *(
            "max_steps=60",
            "log_every=20",
            "evaluate_every=30",
            "objectives.tree_distance.weight=0.05",
            "objectives.tree_depth.weight=0.05",
        )
    )
    run = train(recipe, store, tmp_path, observers=[events.append])
    reports = [event for event in events if isinstance(event, Report)]
    assert [report.step for report in reports] == [20, 40, 60]
    assert reports[-1].losses["loss"] < 0.9 * reports[0].losses["loss"]
    assert set(reports[0].losses) == {"loss", "task", "tree_distance.v1", "tree_depth.v1"}
    assert reports[-1].examples == 60 * 8
    assert run.progress.epoch == 60 * 8 // 96
    assert 0 < reports[-1].data_share < 1
    assert [event.step for event in events if isinstance(event, Evaluation)] == [30, 60]
    assert run.finished


@pytest.mark.slow_cases
@pytest.mark.parametrize("settings", [["accumulation=2"], ["epochs=2", "max_steps=null"]])
def test_an_interrupted_run_resumes_to_the_losses_of_one_that_never_stopped(
    store, small_recipe, tmp_path, settings
) -> None:
    recipe = small_recipe(
        "max_steps=14", "checkpoint_every=3", "evaluate_every=5", "log_every=2", *settings
    )
    whole = train(recipe, store, tmp_path / "whole")
    stop = random.SystemRandom().randrange(4, whole.total_steps)
    cut = resumed(recipe, store, tmp_path / "cut", stop)
    assert losses(cut) == losses(whole), f"stopped at step {stop}"
    assert all(map(torch.equal, weights(cut), weights(whole)))
    assert cut.progress.evaluations == whole.progress.evaluations
    assert cut.progress.examples == whole.progress.examples


def test_a_finished_run_resumes_to_its_end(store, small_recipe, tmp_path) -> None:
    recipe = small_recipe("max_steps=3", "checkpoint_every=2")
    first = train(recipe, store, tmp_path)
    again = train(recipe, store, tmp_path, resume=True)
    assert losses(again) == losses(first)
    assert again.progress.evaluations == first.progress.evaluations


@pytest.mark.slow
def test_a_resumed_run_keeps_its_dataset_version_when_the_dataset_has_grown(
    small_recipe, tmp_path, sample_rows, append_rows
) -> None:
    recipe = small_recipe("checkpoint_every=2")
    with open_store(tmp_path / "store") as store:
        append_rows(store, sample_rows["train"][:40], "train", "en")
        append_rows(store, sample_rows["dev"], "dev", "en")
        whole = train(recipe, store, tmp_path / "whole")
        train(with_settings(recipe, ["max_steps=4"]), store, tmp_path / "cut")
        append_rows(store, sample_rows["train"][40:], "train", "en")
        resumed = train(recipe, store, tmp_path / "cut", resume=True)
    assert resumed.recipe.data.version == whole.recipe.data.version
    assert resumed.progress.examples == whole.progress.examples


def test_resuming_without_a_checkpoint_is_refused(store, small_recipe, tmp_path) -> None:
    with pytest.raises(SpecError, match="no checkpoint"):
        train(small_recipe(), store, tmp_path, resume=True)


def test_the_last_step_is_always_evaluated(store, small_recipe, tmp_path) -> None:
    """The release scores at multiples of its save interval alone."""
    run = train(small_recipe("max_steps=3", "evaluate_every=1000"), store, tmp_path)
    assert [evaluation.step for evaluation in run.progress.evaluations] == [3]
    run = train(small_recipe("max_steps=3", "evaluate_every=null"), store, tmp_path)
    assert [evaluation.step for evaluation in run.progress.evaluations] == [3]


@pytest.mark.parametrize("setting", ["seed=1", "separator_edge=as_released"])
def test_another_seed_or_edge_between_trees_is_another_run(
    store, small_recipe, tmp_path, setting
) -> None:
    first = train(small_recipe("max_steps=2"), store, tmp_path)
    second = train(small_recipe("max_steps=2", setting), store, tmp_path)
    assert losses(first) != losses(second)


@pytest.mark.parametrize("max_length", [200, 16])
def test_matrices_derived_on_the_device_train_the_same(
    store, small_recipe, tmp_path, max_length
) -> None:
    settings = ("max_steps=3", f"data.max_length={max_length}")
    host = train(small_recipe(*settings), store, tmp_path)
    device = train(small_recipe(*settings, "matrices=device"), store, tmp_path)
    assert losses(device) == losses(host)


@pytest.mark.parametrize("variant", ["as_published", "as_released"])
def test_mixed_precision_starts_near_full_precision(store, small_recipe, tmp_path, variant) -> None:
    recipe = small_recipe("max_steps=2", f"gat={variant}", f"attention_bias={variant}")
    exact = losses(train(recipe, store, tmp_path))[0]
    mixed = losses(train(with_settings(recipe, ["precision=bf16"]), store, tmp_path))[0]
    assert mixed == pytest.approx(exact, rel=0.05)
    assert mixed != exact


def test_the_plain_encoder_trains_without_matrices(store, small_recipe, tmp_path) -> None:
    run = train(small_recipe("max_steps=2", "use_syntax=false"), store, tmp_path)
    assert not any("gat" in name for name, _ in run.model.named_parameters())
    stream = run.data.training_stream(
        run.recipe, run.accelerator.device, epoch=0, rank=0, world_size=1
    )
    batch = next(device_batches(stream, run.recipe, run.task, run.accelerator.device))
    assert batch.distance_BLL is batch.depth_BL is batch.ancestor_BLL is None


def recipes_of(task: str) -> list[str]:
    made = ((name, make()) for name, make in RECIPES.items())
    return [
        name
        for name, recipe in made
        if recipe.task.name == task and not recipe.data.template and not recipe.task.given()
    ]


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", recipes_of("sequence_classification.v1"))
def test_every_recipe_of_the_task_trains(name, store, tmp_path, tiny_encoder) -> None:
    tiny = [
        *("data.dataset=sample", "data.tokenizer=parsebank-wordpiece-en", "label=label"),
        *(f"encoder={tiny_encoder}", "weights=random", "max_steps=1", "batch_size=4"),
    ]
    recipe = RECIPES[name]()
    if recipe.model.name == "udprlm.v1":
        tiny.append(
            'model.labels=["_", "APP", "root"]'
        )  # else those of the run that it starts from
    if recipe.model.name == "plbart.v1":  # which brings its own size
        tiny += ["model.layers=1", "hidden_size=16", "model.heads=2", "feed_forward=32"]
    run = train(with_settings(recipe, tiny), store, tmp_path / "run")
    assert run.finished
    assert len(run.progress.evaluations) == 1


@pytest.mark.parametrize(
    ("setting", "error", "message"),
    [
        ("data.dataset=nothing", UnknownDatasetError, "nothing"),
        ("task.label=stance", UnknownNameError, "label of sample 'stance'"),
        ("data.dev_split=test", UnknownDatasetError, "test"),
        ("model.name=syntax_bert.v9", UnknownNameError, "syntax_bert.v9"),
        ("model.encoder=/nowhere", ModelLoadError, "cannot load the encoder '/nowhere'"),
        ("model.weights=pretrained", SpecError, "has no weights"),
        ("data.max_length=600", SpecError, "512 positions"),
        ("model.syntax_heads=9", SpecError, "syntax_heads is 9"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    store, small_recipe, tmp_path, setting, error, message
) -> None:
    with pytest.raises(error, match=message):
        train(small_recipe(setting), store, tmp_path)


def test_an_encoder_with_too_few_pieces_is_refused(
    store, small_recipe, tmp_path, bert_config
) -> None:
    AutoModel.from_config(bert_config).save_pretrained(tmp_path / "encoder")
    recipe = small_recipe(f"encoder={tmp_path / 'encoder'}", "weights=pretrained")
    with pytest.raises(SpecError, match="6000 pieces and the encoder embeds 60"):
        train(recipe, store, tmp_path)


def test_the_learning_rate_rises_then_falls_to_nothing() -> None:
    """No step has the rate 0, which would read a batch for nothing."""
    options = TrainingOptions(learning_rate=1.0, warmup_steps=2)
    assert [learning_rate(step, 6, options) for step in range(6)] == [0.5, 1, 1, 0.75, 0.5, 0.25]
    published = TrainingOptions()
    assert learning_rate(0, 100, published) == published.learning_rate


def test_the_best_model_is_kept(store, small_recipe, tmp_path: Path) -> None:
    run = train(small_recipe("max_steps=30", "evaluate_every=5"), store, tmp_path)
    best = run.progress.best
    assert best is not None
    headlines = [evaluation.headline for evaluation in run.progress.evaluations]
    assert best.headline == max(headlines)
    assert best.step == run.progress.evaluations[headlines.index(max(headlines))].step
    assert {path.name for path in tmp_path.iterdir()} == {"model"}


@pytest.mark.slow
def test_two_processes_share_every_epoch_and_resume_as_one(store_uri, tmp_path) -> None:
    """Two gloo processes, then one that resumes their checkpoint."""
    command = [
        *("parsebank", "train", "sample", "--store", store_uri, "--output", str(tmp_path)),
        *("--set", "batch_size=8", "--set", "checkpoint_every=3", "--set", "log_every=1"),
    ]
    for processes, more in ((2, ["max_steps=6"]), (1, ["max_steps=9", "--resume"])):
        assert launched(*command, "--set", *more, processes=processes).wait() == 0
    result = read_result(tmp_path)
    assert result["steps"] == 9
    assert result["examples"] == 6 * 16 + 3 * 8
    assert result["environment"]["processes"] == 1
    changed = {"training.max_steps": [6, 9], "processes": [2, 1]}
    assert result["resumed"] == [{"step": 6, "changed": changed}]


def test_processes_that_cannot_train_together_are_refused(
    store, small_recipe, tmp_path, monkeypatch
) -> None:
    train(small_recipe("max_steps=1"), store, tmp_path)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SpecError, match="2 processes were started, and 1 can train together"):
        train(small_recipe("max_steps=1"), store, tmp_path)


def test_a_run_pins_the_version_that_it_reads(store, small_recipe, tmp_path) -> None:
    run = train(small_recipe("max_steps=2"), store, tmp_path / "out")
    (pin,) = [pin for pin in store.pins.all().values() if pin.by == str(tmp_path / "out")]
    assert pin.version == run.data.dataset.version
    assert (
        store.dataset("sample", split="train", lang="en", version=pin.name).version == pin.version
    )


def test_a_store_that_cannot_be_written_is_no_reason_not_to_train(
    store, small_recipe, tmp_path, caplog
) -> None:
    folder = Path(store.uri) / "pins"
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("in the way")
    try:
        assert train(small_recipe("max_steps=2"), store, tmp_path / "out").finished
    finally:
        folder.unlink()
    assert "is not pinned and may be vacuumed" in caplog.text


def test_a_released_run_on_texts_as_they_are_written_says_so(store, small_recipe, caplog) -> None:
    """The release reads the words of multiword tokens."""
    released = [f"{switch.option}=as_released" for switch in SWITCHES]
    for settings in ((), released[1:]):
        recipe = small_recipe(*settings)
        warn_of_data(open_source(store, recipe, "train", "en"), recipe)
    assert caplog.text == ""
    recipe = small_recipe(*released)
    source = open_source(store, recipe, "train", "en")
    warn_of_data(source, recipe)
    assert "the pieces of sample are of its texts as they are written" in caplog.text
    assert "--expand-words" in caplog.text


def test_a_run_that_ends_when_scores_stop_rising_and_before_its_first_report_has_a_result(
    store, small_recipe, tmp_path
) -> None:
    events: list[Report | Evaluation] = []
    settings = ("max_steps=40", "evaluate_every=1", "patience=2", "learning_rate=0", "log_every=10")
    run = train(small_recipe(*settings), store, tmp_path, observers=[events.append])
    assert events[-1].step == run.progress.step == len(losses(run)) == 3
    assert run.progress.best.step == 1
    assert result_of(run)["examples"] == 3 * 8


def test_a_model_that_is_no_numbers_any_more_is_not_trained_on(
    store, small_recipe, tmp_path
) -> None:
    settings = ("max_steps=20", "learning_rate=1e30", "warmup_steps=0")
    with pytest.raises(DivergedError, match=r"lower training\.learning_rate"):
        train(small_recipe(*settings), store, tmp_path)


def test_accumulated_batches_train_as_one_of_their_size(
    store, small_recipe, tmp_path, without_dropout
) -> None:
    settings = (*without_dropout, "max_steps=4", "objectives=[]", "bucket=false")
    whole = train(small_recipe(*settings, "batch_size=8"), store, tmp_path)
    parts = small_recipe(*settings, "batch_size=4", "accumulation=2")
    assert losses(train(parts, store, tmp_path)) == pytest.approx(losses(whole), rel=1e-4)
