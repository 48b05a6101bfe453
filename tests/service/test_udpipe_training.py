"""Training a UDPipe model for real, with the tiny recipe on thirty sentences."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from service.parsers import find_parser, identify
from service.parsers.records import read_records
from service.parsers.registry import load_parser
from service.parsers.udpipe.backend import model_in
from service.settings import Settings
from service.training.cards import note_trained
from service.training.command import train_udpipe
from service.training.component import (
    KINDS,
    ComponentJob,
    TrainingError,
    combine_components,
    load_model,
    run_component,
)
from service.training.evaluation import evaluate_parser
from service.training.recipe import DEFAULT, FULL, RECIPES, TINY, Recipe, format_options
from service.training.train import (
    Listener,
    Progress,
    TrainedModel,
    filled_columns,
    fold_of,
    strip_columns,
    train,
)
from syntax import Word
from syntax.errors import ConlluError, ModelLoadError, SpecError, UnknownNameError
from syntax.fingerprint import file_sha256
from syntax.trees.conllu import raw_text, read_conllu, write_conllu
from syntax.trees.conllu.treebank import open_treebank
from syntax.trees.scoring import METRICS

pytestmark = pytest.mark.slow

TREEBANK = Path(__file__).parents[1] / "fixtures" / "treebank-tiny"
TINY_DEV = TREEBANK / "tiny-ud-dev.conllu"
COMPONENTS = {"tokenizer", "tagger", "fold-0", "fold-1", "parser"}


def train_tiny(
    folder: Path,
    recipe: Recipe = TINY,
    treebank: Path = TREEBANK,
    listen: Listener = lambda _: None,
) -> tuple[TrainedModel, list[Progress]]:
    reports: list[Progress] = []

    def report(progress: Progress) -> None:
        reports.append(progress)
        listen(progress)

    trained = train(
        open_treebank(treebank, version="test"),
        folder,
        recipe,
        report,
        name="tiny",
        language="en",
        command="parsebank models train udpipe",
        jobs=2,
    )
    return trained, reports


Finished = tuple[TrainedModel, list[Progress]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return train_tiny(tmp_path_factory.mktemp("models"))


@pytest.fixture
def begun(finished: Finished, tmp_path: Path) -> Path:
    """The components of that training in a folder of the test's own."""
    return Path(shutil.copytree(finished[0].model.parent / "tiny.work", tmp_path / "tiny.work"))


def lettered(folder: Path) -> Path:
    """The treebank with XPOS and FEATS, which its own files leave empty."""

    def fill(word: Word) -> Word:
        feats = "Number=Plur" if word.form.endswith("s") else "Number=Sing"
        return replace(word, xpos=(word.upos or "X")[:2], feats=feats)

    shutil.copytree(TREEBANK, folder)
    for path in folder.glob("*.conllu"):
        given = list(read_conllu(path))
        write_conllu([replace(one, words=tuple(map(fill, one.words))) for one in given], path)
    return folder


@pytest.fixture
def broken_treebank(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TREEBANK, tmp_path / "UD_English-Broken"))


def test_the_model_loads_and_has_the_scores_of_both_splits_and_inputs(finished: Finished) -> None:
    trained, _ = finished
    gold = list(read_conllu(TREEBANK / "tiny-ud-test.conllu"))
    scores = evaluate_parser(load_parser(model_in(trained.model)), gold)
    assert set(trained.scores) == {"dev", "test"}
    assert scores == trained.scores["test"]
    for kinds in trained.scores.values():
        assert set(kinds) == {"raw", "gold_tokens"}
        assert all(tuple(figures) == METRICS for figures in kinds.values())
    assert scores["gold_tokens"]["Words"] == 100.0
    assert scores["gold_tokens"]["UPOS"] > 40.0
    assert scores["raw"]["Tokens"] > 60.0
    assert 0.0 < scores["raw"]["LAS"] < scores["raw"]["UAS"] < 100.0


def test_the_cards_describe_the_file_and_name_licence_authors_and_scores(
    finished: Finished,
) -> None:
    trained, _ = finished
    card = json.loads(trained.card.read_text(encoding="utf-8"))
    assert card["sha256"] == file_sha256(trained.model)
    assert card["size"] == trained.model.stat().st_size
    assert (card["name"], card["backend"], card["language"]) == ("tiny", "udpipe", "en")
    assert (card["treebank"], card["treebank_version"]) == ("treebank-tiny", "test")
    assert (card["licence"], card["attribution"]) == ("Apache-2.0", "the Parsebank authors")
    assert card["recipe"] == json.loads(json.dumps(asdict(TINY)))
    assert card["scores"] == trained.scores
    text = trained.readme.read_text(encoding="utf-8")
    score = f"| {trained.scores['test']['raw']['LAS']:.2f} |"
    for said in ("**Apache-2.0**", "the Parsebank authors", score, "no LEMMA, XPOS, FEATS"):
        assert said in text


def test_every_component_reports_its_rounds(
    finished: Finished,
) -> None:
    _, reports = finished
    assert {report.component for report in reports} == COMPONENTS | {"evaluation"}
    epochs = [report for report in reports if report.component == "tokenizer"]
    assert [report.done for report in epochs] == [0, 1, 2, 2]
    assert "heldout" in epochs[1].message
    assert all(report.done <= report.total for report in reports)


def test_finished_components_are_reused_and_give_the_same_bytes(
    finished: Finished, begun: Path
) -> None:
    next(begun.glob("parser-*.udpipe")).unlink()
    again, reports = train_tiny(begun.parent)
    reused = {report.component for report in reports if report.message == "reused"}
    assert reused == COMPONENTS - {"parser"}
    assert again.model.read_bytes() == finished[0].model.read_bytes()


def test_a_changed_option_retrains_only_what_depends_on_it(begun: Path) -> None:
    changed = replace(TINY, tokenizer={**TINY.tokenizer, "epochs": 1})
    assert started(train_tiny(begun.parent, changed)[1]) == {"tokenizer"}


def started(reports: list[Progress]) -> set[str]:
    return {report.component for report in reports if report.message == "started"}


def test_an_earlier_model_of_the_name_serves_until_training_ends(
    finished: Finished, tmp_path: Path
) -> None:
    shutil.copytree(finished[0].model.parent, tmp_path, dirs_exist_ok=True)
    settings = Settings(models_dir=tmp_path)
    note_trained(settings, model_in(tmp_path / "tiny.udpipe"), {"language": "en"})
    before = identify(find_parser(settings, lang="en")).fingerprint
    served: list[tuple[str, str]] = []

    def listen(report: Progress) -> None:
        fingerprint = identify(find_parser(settings, lang="en")).fingerprint
        served.append((report.component, fingerprint))

    changed = replace(TINY, tokenizer={**TINY.tokenizer, "learning_rate": 0.002})
    trained, _ = train_tiny(tmp_path, changed, listen=listen)
    assert {component for component, _ in served} == COMPONENTS | {"evaluation"}
    assert {fingerprint for _, fingerprint in served} == {before}
    assert file_sha256(trained.model) != file_sha256(finished[0].model)
    note_trained(settings, model_in(trained.model), {"language": "en"})
    assert identify(find_parser(settings, lang="en")).fingerprint != before


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_a_missing_split_is_named(broken_treebank: Path, split: str) -> None:
    (broken_treebank / f"tiny-ud-{split}.conllu").unlink()
    with pytest.raises(SpecError, match=rf"0 files \*-ud-{split}.conllu, expected one"):
        open_treebank(broken_treebank)


def test_a_malformed_line_is_named_before_anything_is_trained(broken_treebank: Path) -> None:
    path = broken_treebank / "tiny-ud-train.conllu"
    path.write_text(path.read_text(encoding="utf-8") + "1\tThree columns\tonly\n\n")
    with pytest.raises(ConlluError) as caught:
        train_tiny(broken_treebank / "out", treebank=broken_treebank)
    assert caught.value.detail["path"].endswith("tiny-ud-train.conllu")
    assert not list(broken_treebank.glob("out/*.work/*.udpipe"))


def test_an_empty_split_is_named(broken_treebank: Path) -> None:
    (broken_treebank / "tiny-ud-dev.conllu").write_text("")
    with pytest.raises(SpecError, match=r"tiny-ud-dev\.conllu holds no sentence"):
        train_tiny(broken_treebank / "out", treebank=broken_treebank)


def test_an_option_that_udpipe_refuses_is_an_error_with_its_words(begun: Path) -> None:
    next(begun.glob("parser-*.udpipe")).unlink()
    recipe = replace(TINY, parser={**TINY.parser, "transition_system": "sideways"})
    with pytest.raises(TrainingError, match="sideways"):
        train_tiny(begun.parent, recipe)
    assert not list(begun.glob("parser-*"))


def test_a_tagger_of_every_column_leaves_the_other_components_as_they_are(
    begun: Path, tmp_path: Path
) -> None:
    tagger = {**FULL.tagger, "iterations_1": 1, "guesser_suffix_rules_1": 2}
    recipe = replace(TINY, columns=FULL.columns, tagger=tagger)
    trained, reports = train_tiny(tmp_path, recipe, lettered(tmp_path / "treebank-tiny"))
    assert started(reports) == {"tagger"}
    test = trained.scores["test"]["gold_tokens"]
    assert min(test[name] for name in ("UPOS", "XPOS", "UFeats", "Lemmas")) > 40.0
    assert test["AllTags"] > 30.0
    text = trained.readme.read_text(encoding="utf-8")
    assert "FORM, UPOS, LEMMA, XPOS, FEATS, HEAD, DEPREL" in text
    assert "It gives no" not in text


def test_a_component_that_is_no_model_cannot_be_combined(tmp_path: Path) -> None:
    broken = tmp_path / "broken.udpipe"
    broken.write_bytes(b"not a model")
    with pytest.raises(TrainingError):
        combine_components(dict.fromkeys(KINDS, broken), TINY_DEV, tmp_path / "x")
    with pytest.raises(ModelLoadError, match="no UDPipe 1 model"):
        load_model(broken)


def test_an_unreadable_training_file_ends_the_component(tmp_path: Path) -> None:
    bad = tmp_path / "bad.conllu"
    bad.write_text("1\ttwo columns\n\n")
    job = ComponentJob(
        "tagger", {"tagger": "iterations=1"}, str(bad), str(bad), str(tmp_path / "out")
    )
    with pytest.raises(TrainingError, match="cannot read the CoNLL-U"):
        run_component(job, lambda _done, _line: None)


def test_each_training_sentence_is_held_out_of_one_fold() -> None:
    folds = [fold_of(at, TINY) for at in range(20)]
    assert folds == [0] * 5 + [1] * 5 + [0] * 5 + [1] * 5


def test_columns_that_are_empty_or_not_of_the_recipe_are_not_learned() -> None:
    sentences = list(read_conllu(TREEBANK / "tiny-ud-train.conllu"))
    assert filled_columns(sentences, FULL.columns) == ("lemma",)
    stripped = strip_columns(sentences)
    kept = strip_columns(sentences, ("lemma",))
    assert {word.lemma for given in stripped for word in given.words} == {None}
    assert [given.words for given in kept] == [given.words for given in sentences]
    assert [given.tokens for given in stripped] == [given.tokens for given in sentences]


def test_raw_text_keeps_spacing_and_paragraphs() -> None:
    text = raw_text(list(read_conllu(TREEBANK / "tiny-ud-test.conllu")))
    paragraphs = text.split("\n\n")
    assert paragraphs[0].startswith("The old bus stopped near the bridge. Peter bought")
    assert paragraphs[1] == "It rained on Sunday. The shops were closed.\n"


def test_recipes_are_named() -> None:
    assert RECIPES["default"] is DEFAULT
    assert list(RECIPES) == ["default", "full", "tiny"]
    assert DEFAULT.name == "default"
    assert format_options({"a": 1, "b": 0.5}) == "a=1;b=0.5"
    with pytest.raises(UnknownNameError, match="Known: default, full, tiny"):
        RECIPES["huge"]


def test_the_command_trains_prints_the_scores_and_records_the_model(
    finished: Finished,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARSEBANK_MODELS_DIR", str(tmp_path))
    shutil.copytree(finished[0].model.parent / "tiny.work", tmp_path / "own.work")
    next((tmp_path / "own.work").glob("tokenizer-*.udpipe")).unlink()
    app = typer.Typer()
    app.command()(train_udpipe)
    arguments = ["--treebank", str(TREEBANK), "--lang", "en", "--out", str(tmp_path)]
    own = ["--recipe", "tiny", "--name", "own", "--jobs", "2"]
    result = CliRunner().invoke(app, [*arguments, *own])
    assert result.exit_code == 0, result.output
    assert "test raw: Tokens" in result.output
    card = json.loads((tmp_path / "own.json").read_text(encoding="utf-8"))
    assert str(tmp_path) not in json.dumps(card)
    assert card["command"].splitlines()[0] == "parsebank models train udpipe \\"
    assert f"recorded in {tmp_path}" in result.output
    assert "requests in 'en' that name no parser get udpipe/own" in result.output
    assert "UPOS" in result.output
    assert "Lemmas" not in result.output + (tmp_path / "own.md").read_text(encoding="utf-8")
    assert read_records(tmp_path)["udpipe/own"].sha256 == card["sha256"]


def test_the_language_is_that_of_the_files(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        (tmp_path / f"fr_sequoia-ud-{split}.conllu").touch()
    assert open_treebank(tmp_path).language == "fr"
    for split in ("train", "dev", "test"):
        (tmp_path / f"fr_sequoia-ud-{split}.conllu").rename(tmp_path / f"mine-ud-{split}.conllu")
    app = typer.Typer()
    app.command()(train_udpipe)
    refused = CliRunner().invoke(app, ["--treebank", str(tmp_path), "--out", str(tmp_path / "out")])
    assert "mine-ud-train.conllu does not begin with a language" in str(refused.exception)
