"""Several languages in one run: none is lost, and each is scored by itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from clients.cli import build_app
from featurestore import open_store
from syntax.errors import SpecError, UnknownDatasetError, UnknownNameError
from trainer.data import open_source
from trainer.results import markdown, read_result
from trainer.trained import load_run, open_language
from trainer.transfer import evaluate_run

SECOND, FRENCH = "ab" * 16, "cd" * 16


@pytest.fixture(scope="module")
def bilingual(tmp_path_factory, sample_rows, append_rows) -> str:
    """English by two parsers, French by a third; the second English one is smaller."""
    uri = str(tmp_path_factory.mktemp("bilingual"))
    with open_store(uri) as store:
        for split in ("train", "dev"):
            rows = sample_rows[split][:24]
            again = [
                replace(row, parser=SECOND, example_key=row.example_key[::-1]) for row in rows[:8]
            ]
            append_rows(store, rows, split, "en")
            append_rows(store, again, split, "en")
            append_rows(store, [replace(row, parser=FRENCH) for row in rows], split, "fr")
        store.describe(FRENCH, "parser", {"name": "french/parser"})
    return uri


def parsebank(*arguments: str | Path) -> Result:
    return CliRunner().invoke(build_app(), list(map(str, arguments)))


def train(store: str, output: Path, *settings: str) -> Result:
    given = [part for one in ("batch_size=8", *settings) for part in ("--set", one)]
    options = ("--store", store, "--output", output, "--max-steps", "2")
    return parsebank("train", "sample", *options, *given)


@pytest.fixture(scope="module")
def run(bilingual, tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("runs") / "both"
    result = train(bilingual, output, "lang=en,fr", "parser=en:another/parser,fr:french/parser")
    assert result.exit_code == 0, result.output
    return output


def test_no_language_is_lost_to_the_choice_of_a_parser(bilingual, tmp_path) -> None:
    ambiguous = train(bilingual, tmp_path / "a", "lang=en,fr")
    assert ambiguous.exit_code == 1
    assert "train/en of dataset 'sample' was parsed by" in ambiguous.stderr
    assert "--set parser=en:" in ambiguous.stderr
    for lang in ("en,fr", "*"):
        lost = train(bilingual, tmp_path / "b", f"lang={lang}", "parser=another/parser")
        assert lost.exit_code == 1
        assert "'fr' of dataset 'sample' was parsed by french/parser" in lost.stderr
        assert "--set parser=en:another/parser,fr:french/parser" in lost.stderr


def test_each_language_is_read_as_parsed_by_its_own_parser(run) -> None:
    result = read_result(run)
    assert result["dataset"]["train"]["languages"] == {"en": 8, "fr": 24}
    assert result["dataset"]["train"]["lang"] == "en,fr"
    assert result["parsers"] == {SECOND: "another/parser", FRENCH: "french/parser"}
    assert "| 32 (train, en 8, fr 24) / 32 (dev, en 8, fr 24) |" in markdown(result)
    assert load_run(run).requirements.parsers == {"en": (SECOND,), "fr": (FRENCH,)}


def test_a_language_that_only_one_split_has_is_refused(
    small_recipe, tmp_path, sample_rows, append_rows
) -> None:
    with open_store(tmp_path) as store:
        append_rows(store, sample_rows["train"][:8], "train", "en")
        append_rows(store, sample_rows["train"][:8], "train", "fr")
        append_rows(store, sample_rows["dev"][:8], "dev", "en")
        recipe = small_recipe("lang=en,fr")
        assert open_source(store, recipe, "train", "en,fr").lang == "en,fr"
        with pytest.raises(UnknownDatasetError, match="'dev/fr'"):
            open_source(store, recipe, "dev", "en,fr")


@pytest.mark.parametrize("langs", [("--lang", "en,fr"), ("--lang", "en", "--lang", "fr")])
def test_languages_are_scored_one_by_one_however_they_are_listed(run, bilingual, langs) -> None:
    result = parsebank("evaluate", run, "--store", bilingual, "--split", "dev", *langs)
    assert result.exit_code == 0, result.output
    content = json.loads((run / "evaluation-dev.json").read_text("utf-8"))
    assert {lang: found["examples"] for lang, found in content["languages"].items()} == {
        "en": 8,
        "fr": 24,
    }
    assert content["mean_of_targets"] is None  # both were trained on
    assert {path.name for path in run.glob("predictions-*")} == {
        "predictions-dev-en.jsonl",
        "predictions-dev-fr.jsonl",
    }


def test_another_parser_may_be_read_by_name(run, bilingual) -> None:
    with open_store(bilingual) as store:
        with pytest.raises(SpecError, match=r"learned en from .* `any_parser=True`"):
            evaluate_run(run, store, "dev", "en", parser="en:udpipe/english-ewt")
        table = evaluate_run(
            run, store, "dev", "en", parser="en:udpipe/english-ewt", any_parser=True
        )
        assert table.scores["en"].examples == 24
        with pytest.raises(UnknownNameError, match="chosen for 'fr', which is not read here"):
            evaluate_run(run, store, "dev", "en", parser="fr:french/parser")
    refused = parsebank(
        *("evaluate", run, "--store", bilingual, "--split", "dev", "--lang", "en"),
        *("--parser", "udpipe/english-ewt"),
    )
    assert refused.stderr.rstrip().endswith("say that another will do: --any-parser")


def test_languages_read_as_one_are_each_checked(run, bilingual) -> None:
    """As where a threshold is tuned on all the languages that a run was trained on."""
    with open_store(bilingual) as store:
        here = load_run(run).on(store)
        source = open_language(store, here, "dev", "en,fr")
        assert source.dataset.langs == {"en": 8, "fr": 24}
        other = load_run(run).on(store, parser="en:udpipe/english-ewt")
        with pytest.raises(SpecError, match="learned en from trees of another/parser"):
            open_language(store, other, "dev", "en,fr")


@pytest.mark.parametrize(
    "command", [("picture", "ex-1", "--split", "dev"), ("predict", "A text.", "Another.")]
)
def test_commands_that_read_one_language_refuse_two(run, bilingual, command) -> None:
    name, *rest = command
    result = parsebank(name, run, *rest, "--store", bilingual, "--lang", "en,fr")
    assert result.exit_code == 1
    assert "--lang en,fr names 2 languages; give one at a time" in result.stderr


def test_lists_of_settings_and_seeds_are_written_with_commas(tmp_path) -> None:
    described = parsebank("train", "sample", "--describe", "--set", "segment_limits=null,12")
    assert "[null, 12]" in described.output
    refused = parsebank("train", "sample", "--describe", "--seed", "1,x")
    assert refused.exit_code == 2
    assert "1,2,3" in refused.output
