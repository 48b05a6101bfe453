"""Killed runs go on to the very losses of runs that never stopped; results repeat themselves."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from clients.benchmarks import SAMPLE
from featurestore import DatasetHandle, open_store
from syntax.errors import SpecError
from tests.trainer.everything import (
    EXAMPLES,
    TASKS,
    append_everything,
    recipe_for,
    two_streams,
)
from tests.trainer.recorded import (
    RecordedRun,
    examples_of_steps,
    launched,
    notes,
    outcome,
)
from tests.trainer.sampled import RareOptions
from trainer.data import open_source
from trainer.loop import train
from trainer.objectives import OBJECTIVES, ObjectiveEntry
from trainer.options import Recipe
from trainer.options.settings import with_settings
from trainer.report import result_of
from trainer.results import is_result_of, recipe_of, write_result
from trainer.streams import feeding


def start(
    uri: str, output: Path, recipe: Recipe, attempt: int, processes: int = 1
) -> subprocess.Popen[bytes]:
    """A process that trains; from its second attempt on, it resumes."""
    output.mkdir(parents=True, exist_ok=True)
    file = output / f"recipe-{attempt}.json"
    file.write_text(json.dumps(recipe.to_json()))
    arguments = [uri, str(output), str(file), str(attempt), *(["--resume"] if attempt > 1 else [])]
    return launched(
        "tests.trainer.recorded", *arguments, processes=processes, stderr=subprocess.DEVNULL
    )


def finish(*arguments, **options) -> None:
    assert start(*arguments, **options).wait() == 0


def kill_at(process: subprocess.Popen[bytes], output: Path, stop: int, rank: int = 0) -> None:
    """Kill -9 the process of a rank, once it has done so many steps; wait for the others."""
    while len(done := notes(output, 1, rank)) < stop and process.poll() is None:
        time.sleep(0.005)
    assert process.poll() is None, "the run was over before it could be killed"
    os.kill(done[-1]["pid"], signal.SIGKILL)
    assert process.wait() != 0


@pytest.mark.slow
@pytest.mark.parametrize("task", ["sequence_classification.v1", "extractive_qa.v1"])
def test_a_killed_process_resumes_to_the_losses_of_one_that_never_stopped(
    everything_uri, tmp_path, monkeypatch, task
) -> None:
    monkeypatch.setattr("trainer.loop.Run", RecordedRun)
    recipe, cut, whole = recipe_for(task), tmp_path / "cut", tmp_path / "whole"
    stop = random.SystemRandom().randrange(4, 16)
    process = start(everything_uri, cut, recipe, 1)
    whole.mkdir()
    with open_store(everything_uri) as store:
        expected = train(recipe, store, whole)
        kill_at(process, cut, stop)
        monkeypatch.setattr(RecordedRun, "attempt", 2)
        resumed = train(recipe, store, cut, resume=True)
    assert notes(cut, 2)[0]["step"] > 1, "it began anew"
    assert resumed.progress.losses == expected.progress.losses, f"killed at step {stop}"
    assert resumed.progress.evaluations == expected.progress.evaluations
    assert examples_of_steps(cut) == examples_of_steps(whole)
    epoch = [name for step in range(1, 7) for name in examples_of_steps(whole)[step]]
    assert len(set(epoch)) == EXAMPLES


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 1])
def test_killed_processes_resume_on_as_many_or_on_one(
    everything_uri, tmp_path, without_dropout, processes
) -> None:
    """A step of two processes is one of one process that accumulates two batches."""
    recipe, cut, whole = (
        recipe_for("sequence_classification.v1", *without_dropout, "epochs=4"),
        tmp_path / "cut",
        tmp_path / "whole",
    )
    stop = random.SystemRandom().randrange(4, 10)
    kill_at(start(everything_uri, cut, recipe, 1, processes=2), cut, stop, rank=1)
    if processes == 1:
        alone = recipe_for(
            "sequence_classification.v1", *without_dropout, "epochs=4", "accumulation=2"
        )
        finish(everything_uri, cut, alone, 2)
    else:
        finish(everything_uri, cut, recipe, 2, processes=2)
    finish(everything_uri, whole, recipe, 1, processes=2)
    assert notes(cut, 2)[0]["step"] > 1, "it began anew"
    assert examples_of_steps(cut) == examples_of_steps(whole)
    found, expected = outcome(cut)["losses"], outcome(whole)["losses"]
    assert len(found) == 12
    assert found == (expected if processes == 2 else pytest.approx(expected, rel=1e-4))


CRITIC = (
    'objectives=[{"name": "rare.v1"}]',
    'optimizers=[{"name": "main"}, {"name": "critic", "parameters": ["objectives"], '
    '"objectives": ["rare"]}]',
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("joins", "settings"), [(False, ()), (True, ("accumulation=2",)), (True, CRITIC)]
)
def test_two_killed_processes_feed_the_same_streams_again(
    everything_uri, tmp_path, monkeypatch, joins, settings
) -> None:
    monkeypatch.setitem(OBJECTIVES._items, "rare.v1", ObjectiveEntry(RareOptions, ""))
    cut, whole = tmp_path / "cut", tmp_path / "whole"
    epochs = "epochs=8" if "accumulation=2" in settings else "epochs=4"
    recipe = two_streams(epochs, *settings, joins=joins)
    stop = random.SystemRandom().randrange(4, 10)
    kill_at(start(everything_uri, cut, recipe, 1, processes=2), cut, stop, rank=1)
    finish(everything_uri, cut, recipe, 2, processes=2)
    finish(everything_uri, whole, recipe, 1, processes=2)
    assert notes(cut, 2)[0]["step"] > 1, "it began anew"
    assert examples_of_steps(cut) == examples_of_steps(whole)
    assert outcome(cut) == outcome(whole)
    assert (whole / "weights-0").read_text() == (whole / "weights-1").read_text()
    fed = [tuple(sorted(feeding(recipe, step))) for step in range(len(outcome(whole)["losses"]))]
    for rank in (0, 1):
        streams = [tuple(note["streams"]) for note in notes(whole, 1, rank)]
        assert streams == fed


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_a_result_repeats_its_run_after_the_store_has_grown_and_been_compacted(
    tmp_path, english, tokenizer, task
) -> None:
    recipe = recipe_for(task, "max_steps=3", "checkpoint_every=null", "evaluate_every=null")
    with open_store(tmp_path / "store") as store:
        append_everything(store, english, tokenizer, "train", 5)
        append_everything(store, english, tokenizer, "train", 5, 5)
        append_everything(store, english, tokenizer, "dev", 4, 20)
        first = train(recipe, store, tmp_path / "first")
        write_result(result_of(first), tmp_path / "first")
        append_everything(store, english, tokenizer, "train", 5, 10)
        store.compact()
        again = train(recipe_of(tmp_path / "first"), store, tmp_path / "again")
        newest = open_source(store, recipe, "train", "en")
    assert len(again.data.dataset) == 10 < len(newest.dataset)
    assert again.progress.losses == first.progress.losses
    assert result_of(again)["scores"] == result_of(first)["scores"]
    assert result_of(again)["dataset"] == result_of(first)["dataset"]


def test_a_folder_that_is_used_again_pins_the_other_dataset_too(
    small_recipe, tmp_path, sample_rows, append_rows
) -> None:
    """Fails where a pin is named after folder and version alone: both datasets are at version 1."""
    with open_store(tmp_path / "store") as store:
        for name in ("sample", "other"):
            append_rows(store, sample_rows["train"][:8], "train", "en", name)
            append_rows(store, sample_rows["dev"][:8], "dev", "en", name)
            train(small_recipe("max_steps=1", f"data.dataset={name}"), store, tmp_path / "out")
        pins = [pin for pin in store.pins.all().values() if pin.by == str(tmp_path / "out")]
    assert len(pins) == 2


@pytest.mark.parametrize("named", ["null", "parsebank-wordpiece-en"])
def test_a_run_is_repeated_and_resumed_once_its_dataset_has_another_tokenizer(
    small_recipe, tmp_path, sample_rows, append_rows, tokenizer, named
) -> None:
    first, settings = tmp_path / "first", (f"data.tokenizer={named}", "checkpoint_every=1")
    recipe = small_recipe("max_steps=2", *settings)
    with open_store(tmp_path / "store") as store:
        for split in ("train", "dev"):
            append_rows(store, sample_rows[split][:16], split, "en")
        run = train(recipe, store, first)
        write_result(result_of(run), first)
        assert is_result_of(first, recipe)
        other = (tokenizer.name, "cd" * 16, tokenizer.special_tokens)
        for split in ("train", "dev"):
            handle = DatasetHandle(SAMPLE.spec(split, "en"), *other, matrices=False)
            store.features.append(handle, sample_rows[split][:16])
        with pytest.raises(
            SpecError, match="several tokenizers; choose one of them with `tokenizer=`"
        ):
            train(recipe, store, tmp_path / "ambiguous")
        again = train(recipe_of(first), store, tmp_path / "again")
        if named == "null":
            assert train(recipe, store, first, resume=True).progress.step == 2
    assert again.progress.losses == run.progress.losses


@pytest.fixture
def stopped(store, small_recipe, tmp_path) -> tuple[Recipe, Path]:
    """A run of four steps and its folder."""
    recipe = small_recipe("max_steps=4", "checkpoint_every=2", "evaluate_every=2")
    train(recipe, store, tmp_path / "out")
    return recipe, tmp_path / "out"


def test_what_the_steps_done_were_made_with_cannot_be_changed_on_the_way(store, stopped) -> None:
    recipe, output = stopped
    for setting in (
        *("seed=3", "batch_size=4", "optimizer=sgd", "learning_rate=0.1", "schedule=plateau"),
        *("warmup_steps=1", "clip_norm=0", "weight_decay=0.1", "precision=bf16", "max_length=32"),
        "gat=as_released",
    ):
        key = setting.partition("=")[0]
        with pytest.raises(SpecError, match=rf"was made with \w+\.{key}="):
            train(with_settings(recipe, [setting]), store, output, resume=True)


def test_what_a_resumed_run_has_otherwise_is_in_its_result(store, stopped) -> None:
    recipe, output = stopped
    longer = with_settings(recipe, ["max_steps=6", "log_every=2"])
    result = result_of(train(longer, store, output, resume=True))
    changed = {"training.max_steps": [4, 6], "training.log_every": [1, 2]}
    assert result["resumed"] == [{"step": 4, "changed": changed}]
    assert result["steps"] == 6
    with pytest.raises(SpecError, match="is at step 6, and the recipe ends at step 2"):
        train(with_settings(recipe, ["max_steps=2"]), store, output, resume=True)
