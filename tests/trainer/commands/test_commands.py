from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers.utils.logging import enable_progress_bar, is_progress_bar_enabled
from typer.testing import Result

from tests.trainer.command import need_no_torch, parsebank
from trainer.results import read_result, recipe_of


def short(store_uri: str, output: Path, *more: str) -> Result:
    settings = ["--set", "batch_size=8", "--set", "log_every=1", "--max-steps", "4"]
    return parsebank("train", "sample", "--store", store_uri, "--output", output, *settings, *more)


def test_recipes_are_listed_with_what_they_are() -> None:
    result = parsebank("train", "--list")
    assert result.exit_code == 0
    lines = dict(line.split("\t") for line in result.output.splitlines())
    assert "PAWS-X as the released script trains it" in lines["pawsx-as-released"]
    (xnli,) = (x for x in json.loads(parsebank("train", "--list", "--json").stdout)
               if x["recipe"] == "xnli")  # fmt: skip
    assert xnli["what"] == lines["xnli"]


def test_a_recipe_is_described_by_option_value_and_kind() -> None:
    result = parsebank("train", "xnli", "--describe", "--set", "gat=as_released")
    assert result.exit_code == 0
    rows = [line.split("\t") for line in result.output.splitlines()]
    assert ["model.gat", '"as_released"'] in [row[:2] for row in rows]
    assert max(len(row[2]) for row in rows) > 40  # nothing is cut
    described = json.loads(parsebank("train", "xnli", "--describe", "--json").stdout)
    assert [one["option"] for one in described] == [row[0] for row in rows[1:]]


def test_json_of_a_training_is_refused_and_not_ignored(store_uri, tmp_path) -> None:
    refused = short(store_uri, tmp_path / "run", "--json")
    assert refused.exit_code == 2
    assert "--json goes with --list or --describe" in " ".join(refused.stderr.split())
    assert not (tmp_path / "run").exists()


def test_help_and_list_of_recipes_import_no_torch() -> None:
    assert need_no_torch(["--help"], ["train", "--help"], ["train", "--list"])


def test_training_leaves_a_result_that_can_be_repeated(store_uri, tmp_path) -> None:
    first = short(store_uri, tmp_path / "one", "--seed", "3")
    assert first.exit_code == 0, first.output
    result = read_result(tmp_path / "one")
    assert result["recipe"]["training"]["seed"] == 3
    assert result["steps"] == 4
    assert result["examples"] == 32
    assert result["examples_per_second"] > 0
    assert result["loss_start"] > 0
    assert set(result["scores"]["per_class"]) == {"entailment", "neutral", "contradiction"}
    assert result["accuracy"] == result["scores"]["accuracy"]
    assert result["tokenizer"]["name"] == "parsebank-wordpiece-en"
    assert list(result["parsers"].values()) == ["udpipe/english-ewt"]
    assert result["dataset"]["train"]["examples"] == 96
    text = (tmp_path / "one" / "result.md").read_text("utf-8")
    assert "| entailment |" in text
    assert list((tmp_path / "one" / "tensorboard").iterdir())

    for output, run in (("two", "one/result.json"), ("three", "one")):
        where = ("--store", store_uri, "--output", tmp_path / output)
        again = parsebank("train", tmp_path / run, *where)
        assert again.exit_code == 0, again.output
        repeated = read_result(tmp_path / output)
        assert repeated["loss_end"] == result["loss_end"]
        assert recipe_of(tmp_path / output) == recipe_of(tmp_path / "one")


def test_several_seeds_are_summed_up_and_not_trained_twice(store_uri, tmp_path) -> None:
    first = short(store_uri, tmp_path, "--seed", "1", "--seed", "2")
    assert first.exit_code == 0, first.output
    summary = json.loads((tmp_path / "seeds.json").read_text("utf-8"))
    scores = [read_result(tmp_path / f"seed{seed}")["accuracy"] for seed in (1, 2)]
    assert list(summary["scores"].values()) == scores
    assert summary["mean"] == pytest.approx(sum(scores) / 2)
    assert summary["deviation"] == pytest.approx(abs(scores[0] - scores[1]) / 2**0.5)
    again = short(store_uri, tmp_path, "--seed", "1", "--seed", "2")
    assert again.output.count("is done") == 2
    other = short(store_uri, tmp_path, "--seed", "1", "--seed", "2", "--set", "batch_size=4")
    assert other.exit_code == 1
    assert "already holds the result" in other.stderr


def test_evaluation_prints_languages_and_keeps_the_numbers(store_uri, tmp_path) -> None:
    assert short(store_uri, tmp_path).exit_code == 0
    result = parsebank("evaluate", tmp_path, "--store", store_uri, "--split", "dev")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "language\texamples\taccuracy\tmajority class"
    assert "transfer gap\t\t" in result.stdout
    content = json.loads((tmp_path / "evaluation-dev.json").read_text("utf-8"))
    assert set(content["languages"]) == {"de", "en", "fr"}
    where = ("evaluate", tmp_path, "--store", store_uri, "--split", "dev")
    assert "de" not in parsebank(*where, "--lang", "fr").stdout.split()
    refused = parsebank(*where, "--rules", "squad")
    assert "the run is of sequence_classification.v1" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "which recipe? Known: "),
        (["train", "nowhere/result.json"], "holds no result.json"),
        (["train", "tests"], "holds no result.json"),
        (["train", "sample", "--seed", "-1"], "training.seed is -1; it must be at least 0"),
    ],
)
def test_mistakes_get_one_readable_line(arguments, message, tmp_path) -> None:
    result = parsebank(*arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [("train", "sample"), ("evaluate", "."), ("verify", ".", "."), ("picture", ".", "dev-1")],
)
def test_a_folder_that_is_no_store_is_named(arguments, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "result.json").write_text("{}", "utf-8")
    result = parsebank(*arguments, "--store", tmp_path / "nope")
    assert result.exit_code == 1
    assert f"there is no store at {tmp_path / 'nope'}" in "".join(result.stderr.splitlines())
    assert "name another with --store" in result.stderr


@pytest.mark.parametrize("content", ["{", "{}"])
def test_a_file_that_is_no_result_is_refused(content, tmp_path) -> None:
    file = tmp_path / "result.json"
    file.write_text(content)
    result = parsebank("train", file)
    assert result.exit_code == 1
    assert "result.json" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "{run}", "--split", "dev", "--rules", "squad"),
        ("verify", "{run}", "{run}", "--split", "dev"),
        ("predict", "{run}", "one text of two"),
        ("picture", "{run}", "no such example"),
    ],
)
def test_commands_that_load_models_show_no_bars_of_their_weights(
    arguments, trained, store_uri
) -> None:
    enable_progress_bar()
    words = [word.format(run=trained) for word in arguments]
    assert parsebank(*words, "--store", store_uri).exit_code == 1
    assert not is_progress_bar_enabled()


@pytest.mark.parametrize("fault", ["task.label=stance", "model.encoder=no/such/encoder"])
def test_a_run_that_cannot_begin_shows_no_bar_and_leaves_no_folder(
    fault, store_uri, tmp_path
) -> None:
    result = short(store_uri, tmp_path / "run", "--set", fault)
    assert result.exit_code == 1
    assert result.stdout.strip() == ""
    assert not (tmp_path / "run").exists()


def test_a_training_names_all_that_is_wrong_with_it(store_uri, tmp_path) -> None:
    options = short(store_uri, tmp_path, "--set", "learning_rat=1", "--set", "epochs=many")
    assert "there are 2 mistakes" in options.stderr
    assert "Did you mean 'learning_rate'?" in options.stderr
    assert "training.epochs cannot be 'many'; it is int" in options.stderr
    parts = ("--set", "data.train_split=trian", "--set", "data.dev_split=devel")
    data = short(store_uri, tmp_path, *parts)
    assert data.exit_code == 1
    assert "'trian/" in data.stderr
    assert "'devel/" in data.stderr
