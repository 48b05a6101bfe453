"""What a run leaves for people, and several seeds in one command."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import pairwise

import pytest

from featurestore import open_store
from syntax.errors import SpecError
from tests.trainer.command import parsebank
from tests.trainer.everything import append_everything, recipe_for
from tests.trainer.recorded import launched
from trainer.evaluation.transfer import (
    Cell,
    CrossedTable,
    TransferTable,
    write_table,
)
from trainer.loop import train
from trainer.progress import Evaluation, Progress
from trainer.recipes import RECIPES
from trainer.report import curve, result_of
from trainer.results import RESULT, markdown, read_result, write_result
from trainer.seeds import SeedSummary, summarise_seeds, write_summary
from trainer.tasks.trees import TreesScores


def test_scores_of_every_task_are_shown(tmp_path, english, tokenizer) -> None:
    settings = ("max_steps=1", "evaluate_every=null", "checkpoint_every=null", "accumulation=2")
    with open_store(tmp_path / "store") as store:
        append_everything(store, english, tokenizer, "train", 8)
        append_everything(store, english, tokenizer, "dev", 4, 8)
        run = train(recipe_for("intent_slots.v1", *settings), store, tmp_path / "out")
    result = result_of(run)
    text = markdown(result)
    assert "| steps | 1 of 8 examples |" in text
    for name in ("intent_accuracy", "slot_f1"):
        assert f"| {name} | {result['scores'][name]:.4f} |" in text


@pytest.mark.slow
def test_a_killed_command_of_several_seeds_resumes(store_uri, tmp_path) -> None:
    """As if killed in the second of three seeds: one is done, one has begun, one has not."""
    seeds = ("--seed", "1", "--seed", "2", "--seed", "3", "--max-steps", "4")
    command = ("train", "sample", "--store", store_uri, "--output", str(tmp_path), *seeds)
    small = ("--set", "batch_size=8", "--set", "checkpoint_every=2", "--set", "log_every=1")
    whole = parsebank(*command, *small)
    assert whole.exit_code == 0, whole.output
    expected = read_result(tmp_path / "seed2")["loss_end"]
    (tmp_path / "seed2" / "result.json").unlink()
    shutil.rmtree(tmp_path / "seed3")
    again = parsebank(*command, *small, "--resume")
    assert again.exit_code == 0, again.output
    assert again.output.count("is done") == 1
    assert read_result(tmp_path / "seed2")["loss_end"] == expected


@pytest.mark.slow
def test_two_processes_train_several_seeds_and_one_of_them_tells(store_uri, tmp_path) -> None:
    seeds = ("--seed", "1", "--seed", "2", "--max-steps", "2", "--set", "batch_size=8")
    command = ("parsebank", "train", "sample", "--store", store_uri, "--output", str(tmp_path))
    done = launched(*command, *seeds, processes=2, stdout=subprocess.PIPE, text=True)
    told, _ = done.communicate()
    assert done.returncode == 0
    assert told.count("seed 2: ") == told.count("over 2 seeds") == 1
    assert set(json.loads((tmp_path / "seeds.json").read_text("utf-8"))["scores"]) == {"1", "2"}
    assert len(list((tmp_path / "seed2" / "tensorboard").iterdir())) == 1
    assert read_result(tmp_path / "seed2")["environment"]["processes"] == 2


def test_what_is_no_number_is_null_in_a_result(trained, tmp_path) -> None:
    """NaN is no JSON, whatever Python reads."""
    result = {**read_result(trained), "loss_end": float("nan"), "evaluations": [float("inf")]}
    write_result(result, tmp_path)
    found = json.loads((tmp_path / RESULT).read_text("utf-8"), parse_constant=pytest.fail)
    assert found["loss_end"] is None
    assert found["evaluations"] == [None]


def test_what_is_no_number_is_null_in_every_file_of_a_run(tmp_path) -> None:
    recipe = RECIPES["sample"]().to_json()
    (tmp_path / RESULT).write_text(json.dumps({"recipe": recipe}), "utf-8")
    nan = float("nan")
    scores = {"en": TreesScores(2, nan, nan, {})}
    head = {"dataset": "sample", "split": "dev", "sources": ["en"], "metric": "structure"}
    by_language = TransferTable(**head, data={"en": {}}, scores=scores, predictions={})
    cells = {("en", "en"): Cell(nan, 2, 0, 0)}
    crossed = CrossedTable(**head, data={}, fields=("a", "b"), langs=["en"], cells=cells)
    write_table(by_language, tmp_path)
    write_table(crossed, tmp_path)
    write_summary(SeedSummary("sample", "structure", {0: nan}, nan, 0.0, {0: "seed0"}), tmp_path)
    for name in ("evaluation-dev.json", "crossed-dev.json", "seeds.json"):
        text = (tmp_path / name).read_text("utf-8")
        assert ": null" in text
        json.loads(text, parse_constant=pytest.fail)


def test_the_curve_averages_losses_between_logs_and_has_every_dev_score() -> None:
    evaluations = [Evaluation(step, "f1", step / 10, {}) for step in (4, 7)]
    losses = [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    found = curve(Progress(step=7, losses=losses, evaluations=evaluations), log_every=3)
    assert found == {
        "steps": [3, 6, 7],
        "losses": [6.0, 3.0, 1.0],
        "dev_steps": [4, 7],
        "dev_scores": [0.4, 0.7],
    }


@pytest.mark.parametrize("steps", [1, 999, 1000, 1001, 123_457])
def test_the_curve_of_a_long_run_has_a_bounded_number_of_points(steps) -> None:
    losses = [float(step) for step in range(steps)]
    found = curve(Progress(step=steps, losses=losses), log_every=7, points=100)
    assert len(found["losses"]) == len(found["steps"]) <= 100
    assert found["steps"][-1] == steps
    assert all(step % 7 == 0 for step in found["steps"][:-1])
    widths = [end - start for start, end in pairwise([0, *found["steps"]])]
    whole = sum(mean * width for mean, width in zip(found["losses"], widths, strict=True))
    assert whole == pytest.approx(sum(losses))


def test_a_run_that_ended_before_its_first_step_has_an_empty_curve() -> None:
    assert curve(Progress(), log_every=10)["steps"] == []


def test_the_curve_is_in_the_result_of_a_run(trained) -> None:
    result = read_result(trained)
    found = result["curve"]
    assert found["steps"] == [5, 10, 15, 20]
    assert sum(found["losses"][:1]) == pytest.approx(result["loss_start"], rel=0.5)
    assert found["dev_steps"] == [one["step"] for one in result["evaluations"]]
    assert found["dev_scores"] == [one["headline"] for one in result["evaluations"]]


def test_a_seed_without_a_score_is_named(tmp_path) -> None:
    for seed, score in ((1, 0.5), (2, None)):
        result = {"recipe": {"name": "sample"}, "metric": "accuracy", "accuracy": score}
        (tmp_path / f"seed{seed}").mkdir()
        (tmp_path / f"seed{seed}" / RESULT).write_text(json.dumps(result), "utf-8")
    with pytest.raises(SpecError, match=r"seed2 has no number for accuracy"):
        summarise_seeds({seed: tmp_path / f"seed{seed}" for seed in (1, 2)})


def test_an_evaluation_without_a_number_is_never_the_best_of_several() -> None:
    headlines = (float("nan"), 0.2, float("nan"), 0.5, 0.4)
    evaluations = [Evaluation(step, "f1", value, {}) for step, value in enumerate(headlines)]
    found = [Progress(evaluations=evaluations[: n + 1]).best for n in range(len(headlines))]
    assert [one.step for one in found if one is not None] == [0, 1, 1, 3, 3]
    assert Progress(evaluations=evaluations).evaluations_since_best == 1
