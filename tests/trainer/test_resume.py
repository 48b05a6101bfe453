"""Killed runs go on to the very losses of runs that never stopped; results repeat themselves."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from transformers import BertConfig

from featurestore import FeatureStore, open_store
from tests.trainer.everything import TASKS, append_everything, recipe_for
from tests.trainer.recorded import RecordedRun, examples_of_steps, notes, outcome
from trainer.data import open_source
from trainer.loop import train
from trainer.options import Recipe
from trainer.report import result_of
from trainer.results import recipe_of, write_result

EXAMPLES, DEV = 24, 12
TWO = ("torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m")


@pytest.fixture(scope="session")
def everything_uri(tmp_path_factory, english, tokenizer) -> str:
    uri = str(tmp_path_factory.mktemp("everything") / "store")
    with open_store(uri) as store:
        append_everything(store, english, tokenizer, "train", EXAMPLES)
        append_everything(store, english, tokenizer, "dev", DEV, EXAMPLES)
    return uri


@pytest.fixture
def everything(everything_uri) -> Iterator[FeatureStore]:
    with open_store(everything_uri) as store:
        yield store


def start(
    uri: str, output: Path, recipe: Recipe, attempt: int, launch: tuple[str, ...] = ()
) -> subprocess.Popen[bytes]:
    """A process that trains; from its second attempt on, it resumes."""
    output.mkdir(parents=True, exist_ok=True)
    file = output / f"recipe-{attempt}.json"
    file.write_text(json.dumps(recipe.to_json()))
    arguments = [uri, str(output), str(file), str(attempt), *(["--resume"] if attempt > 1 else [])]
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", *launch, "tests.trainer.recorded", *arguments]
    return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)


def finish(*arguments, **options) -> None:
    assert start(*arguments, **options).wait() == 0


def kill_at(process: subprocess.Popen[bytes], output: Path, stop: int, rank: int = 0) -> None:
    """Kill -9 the process of a rank, once it has done so many steps; wait for the others."""
    while len(done := notes(output, 1, rank)) < stop and process.poll() is None:
        time.sleep(0.005)
    assert process.poll() is None, "the run was over before it could be killed"
    os.kill(done[-1]["pid"], signal.SIGKILL)
    assert process.wait() != 0


@pytest.mark.parametrize(
    "task",
    [pytest.param(task, marks=[pytest.mark.slow] if n else []) for n, task in enumerate(TASKS)],
)
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


@pytest.fixture
def no_dropout(tmp_path) -> tuple[str, ...]:
    """Settings of a model that draws nothing, so that processes need not draw alike."""
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    off = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    folder = tmp_path / "encoder"
    BertConfig(intermediate_size=32, **size, **off).save_pretrained(folder)
    return (f"encoder={folder}", "model.dropout=0", "gat_dropout=0")


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 1])
def test_killed_processes_resume_on_as_many_or_on_one(
    everything_uri, tmp_path, no_dropout, processes
) -> None:
    """A step of two processes is one of one process that accumulates two batches."""
    recipe, cut, whole = (
        recipe_for("sequence_classification.v1", *no_dropout, "epochs=4"),
        tmp_path / "cut",
        tmp_path / "whole",
    )
    stop = random.SystemRandom().randrange(4, 10)
    kill_at(start(everything_uri, cut, recipe, 1, TWO), cut, stop, rank=1)
    if processes == 1:
        alone = recipe_for("sequence_classification.v1", *no_dropout, "epochs=4", "accumulation=2")
        finish(everything_uri, cut, alone, 2)
    else:
        finish(everything_uri, cut, recipe, 2, TWO)
    finish(everything_uri, whole, recipe, 1, TWO)
    assert notes(cut, 2)[0]["step"] > 1, "it began anew"
    assert examples_of_steps(cut) == examples_of_steps(whole)
    found, expected = outcome(cut)["losses"], outcome(whole)["losses"]
    assert len(found) == 12
    assert found == (expected if processes == 2 else pytest.approx(expected, rel=1e-4))


@pytest.mark.parametrize("task", [*TASKS][1:])
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
