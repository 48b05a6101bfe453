"""Several languages in one run: none is lost, and each is scored by itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import Result

from featurestore import open_store
from syntax.errors import SpecError, UnknownDatasetError, UnknownNameError
from syntax.fingerprint import fingerprint
from tests.trainer.command import parsebank
from trainer.data import open_source
from trainer.evaluation.trained import load_run, open_language
from trainer.evaluation.transfer import evaluate_run
from trainer.loop import train as train_recipe
from trainer.results import markdown, read_result

SECOND, FRENCH = "ab" * 16, "cd" * 16


def parsed_by(parser, rows):
    return [replace(row, parser=parser, example_key=fingerprint([parser, row.seq])) for row in rows]


@pytest.fixture(scope="module")
def bilingual(tmp_path_factory, sample_rows, append_rows, english) -> str:
    """English by two parsers, French by a third; the second English one is smaller.

    The test has German, and English, by two parsers each.
    """
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
        for parser, count in ((SECOND, 4), (FRENCH, 8)):
            append_rows(store, parsed_by(parser, sample_rows["dev"][:count]), "test", "de")
        for parser, count in ((english.identity.fingerprint, 8), (SECOND, 4)):
            append_rows(store, parsed_by(parser, sample_rows["dev"][:count]), "test", "en")
        store.describe(FRENCH, "parser", {"name": "french/parser"})
    return uri


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


def test_a_limit_is_one_of_each_language_in_training_alone(bilingual, small_recipe) -> None:
    parsers = "parser=en:another/parser,fr:french/parser"
    with open_store(bilingual) as store:
        recipe = small_recipe("lang=en,fr", "limit=5", parsers)
        train = open_source(store, recipe, "train", "en,fr", labelled=True)
        assert train.dataset.langs == {"en": 5, "fr": 5}
        assert len(open_source(store, recipe, "dev", "en,fr").dataset) > 10


@pytest.mark.parametrize(("ours", "theirs"), [("en,fr", "en"), ("en", "en,fr")])
def test_every_language_of_train_is_one_of_dev(
    small_recipe, tmp_path, sample_rows, append_rows, ours, theirs
) -> None:
    """Also where nobody names them, and models would be selected on the others alone."""
    with open_store(tmp_path / "store") as store:
        for split, langs in (("train", ours), ("dev", theirs)):
            for lang in langs.split(","):
                append_rows(store, sample_rows[split][:8], split, lang)
        with pytest.raises(SpecError, match=r"; backfill what is missing, or .*`lang=en`"):
            train_recipe(small_recipe("lang=*"), store, tmp_path / "all")
        named = small_recipe("lang=en", "max_steps=1")
        assert train_recipe(named, store, tmp_path / "named").finished


@pytest.mark.slow
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


def test_a_stored_split_is_predicted_as_parsed_by_a_parser_that_is_named(run, bilingual) -> None:
    """Where two parsed a language that the model was not trained on, neither is its own."""
    where = ("predict", run, "--store", bilingual, "--split", "test", "--lang", "de", "--json")
    open_choice = parsebank(*where)
    assert open_choice.exit_code == 1
    assert "test/de of dataset 'sample' was parsed by" in open_choice.stderr
    for parser, count in (("another/parser", 4), ("de:french/parser", 8)):
        named = parsebank(*where, "--parser", parser)
        assert named.exit_code == 0, named.output
        assert len(named.stdout.splitlines()) == count
    lost = parsebank(*where, "--parser", "fr:french/parser")
    assert "chosen for 'fr', which is not read here" in lost.stderr


@pytest.mark.parametrize("lang", ["*", "de,en"])
def test_a_language_is_read_by_the_models_parser_whatever_the_others_are(
    run, bilingual, lang
) -> None:
    """The model knows no parser of the one language, and one of two of the other."""
    with open_store(bilingual) as store:
        here = load_run(run).on(store, parser="de:french/parser")
        source = open_language(store, here, "test", lang)
        assert source.dataset.langs == {"de": 8, "en": 4}


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
