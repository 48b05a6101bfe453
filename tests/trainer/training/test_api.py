"""Python's way to train, evaluate and predict: the same functions and files as the commands'."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager

import pytest

import trainer
from featurestore import FeatureStore
from syntax.errors import SpecError, StoreFormatError, UnknownNameError
from tests.trainer.command import parsebank
from trainer import api
from trainer.evaluation.predict import RawExample
from trainer.progress import Evaluation, Report
from trainer.results import read_result

SHORT = {"batch_size": 8, "log_every": 1, "max_steps": 4}


def lasting(result: dict) -> dict:
    """A result without the times that every run has anew."""
    timed = ("seconds", "examples_per_second", "data_share")
    return {name: value for name, value in result.items() if name not in timed}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, store_uri: str) -> api.FinishedRun:
    output = tmp_path_factory.mktemp("api") / "run"
    return api.train("sample", store_uri, output, settings={**SHORT, "checkpoint_every": 2})


def test_the_package_offers_the_functions_without_importing_torch() -> None:
    assert trainer.train is api.train
    assert all(getattr(trainer, name) is getattr(api, name) for name in trainer.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        _ = trainer.trian
    code = "import sys, trainer.api; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_run_equals_that_of_the_command(run: api.FinishedRun, store_uri, tmp_path) -> None:
    settings = [x for key, value in SHORT.items() for x in ("--set", f"{key}={value}")]
    settings += ["--set", "checkpoint_every=2"]
    told = parsebank("train", "sample", "--store", store_uri, "--output", tmp_path, *settings)
    assert told.exit_code == 0, told.output
    assert lasting(read_result(tmp_path)) == lasting(read_result(run.folder))
    assert run.result["loss_end"] == read_result(run.folder)["loss_end"]
    assert run.metric == "accuracy"
    assert run.score == run.result["accuracy"]
    assert api.FinishedRun.read(run.folder).recipe == run.recipe


def test_a_recipe_is_given_by_value_name_or_result(run: api.FinishedRun, small_recipe) -> None:
    recipe = small_recipe()
    assert api.chosen_recipe(recipe) == recipe
    assert api.chosen_recipe("sample", {"max_steps": 8}).training.max_steps == 8
    assert api.chosen_recipe("sample", ["max_steps=8"], seed=3).training.seed == 3
    for place in (run.folder, str(run.folder / "result.json")):
        assert api.chosen_recipe(place) == run.recipe
    with pytest.raises(UnknownNameError, match=r"unknown recipe 'smaple'\. Did you mean 'sample'"):
        api.chosen_recipe("smaple")
    with pytest.raises(UnknownNameError, match="unknown recipe option 'max_step'"):
        api.chosen_recipe("sample", {"max_step": 8})


def test_a_result_is_not_overwritten_but_continued(store_uri, tmp_path) -> None:
    run = api.train(
        "sample", store_uri, tmp_path, settings={**SHORT, "max_steps": 4, "checkpoint_every": 2}
    )
    with pytest.raises(SpecError, match="already holds the result of a run"):
        api.train("sample", store_uri, run.folder)
    events: list[Report | Evaluation] = []
    options = {"settings": {**SHORT, "checkpoint_every": 2}, "max_steps": 6, "resume": True}
    again = api.train("sample", store_uri, run.folder, observers=[events.append], **options)
    assert again.result["steps"] == 6
    assert [event.step for event in events if isinstance(event, Report)] == [5, 6]
    assert read_result(run.folder)["resumed"][0]["step"] == 4


def test_observers_that_fail_as_they_close_leave_the_result(store_uri, tmp_path) -> None:
    @contextmanager
    def failing(recipe, folder):
        yield []
        raise OSError("the server of the curves is away")

    with pytest.raises(OSError, match="curves is away"):
        api.train("sample", store_uri, tmp_path, settings=SHORT, observers=failing)
    assert read_result(tmp_path)["steps"] == SHORT["max_steps"]


def test_a_store_that_is_open_stays_open(run: api.FinishedRun, store: FeatureStore) -> None:
    scored = api.evaluate(run, store, "dev", "en")
    assert list(scored.scores) == ["en"]
    assert store.datasets()
    with pytest.raises(StoreFormatError, match="no store at"):
        api.evaluate(run, run.folder / "nowhere", "dev")
    with pytest.raises(SpecError, match=r"holds no result.json"):
        api.evaluate(run.folder / "nowhere", store, "dev")


def test_scores_are_written_as_by_the_command(run: api.FinishedRun, store_uri) -> None:
    scored = api.evaluate(run.folder, store_uri, "dev", ["en", "de"])
    written = json.loads((run.folder / "evaluation-dev.json").read_text("utf-8"))
    assert written == json.loads(json.dumps(scored.to_json()))
    where = ("--store", store_uri, "--split", "dev", "--lang", "en,de", "--json")
    (printed,) = json.loads(parsebank("evaluate", run.folder, *where).stdout)
    assert printed == written


def test_texts_are_given_in_several_forms(run: api.FinishedRun, client) -> None:
    pair = ("It rains.", "It is wet.")
    mapped = {"premise": pair[0], "hypothesis": pair[1], "example_id": "x"}
    loaded = api.load_run(run)
    found = api.predict(loaded, [pair, mapped, RawExample("y", pair)], client=client)
    assert [one.example_id for one in found] == ["0", "x", "y"]
    assert len({one.predicted for one in found}) == 1
    assert client.health()  # it is still open
    for wrong in ("It rains.", ("a", "b", "c"), ("a", ["b"])):
        with pytest.raises(SpecError, match=r"item 1 is .*2 texts: premise, hypothesis"):
            api.predict(loaded, [wrong], client=client)
    with pytest.raises(SpecError, match="item 1 is not an example"):
        api.predict(loaded, [{"premise": "a"}], client=client)
    with pytest.raises(SpecError, match="give one of the two"):
        api.predict(loaded, [pair], client="http://127.0.0.1:1", store="here")
