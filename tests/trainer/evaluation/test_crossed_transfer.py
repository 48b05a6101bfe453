"""Generalised transfer: every ordered pair of languages, joined by name."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from featurestore import DatasetHandle, ExampleRow, open_store
from service.parsers import Limits, ParseInput
from syntax.alignment import segment_features
from syntax.errors import SpecError
from syntax.examples import DatasetSpec, LabelSpec, SpanLabel
from syntax.fingerprint import fingerprint
from tests.trainer.command import parsebank
from tests.trainer.runs import finished
from tests.trainer.tagged import sentences
from trainer.evaluation.predictions import predictions_file, read_predictions
from trainer.evaluation.transfer import evaluate_crossed, evaluate_run, write_table
from trainer.loop import train
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.report import result_of
from trainer.results import write_result


@pytest.fixture(scope="module")
def translated(tmp_path_factory, sample_rows, append_rows) -> str:
    """The pairs as English; as German without the first five, three of them with another label."""
    uri = str(tmp_path_factory.mktemp("crossed") / "store")
    rows = sample_rows["dev"]
    german = [
        replace(row, labels={"label": "neutral" if other else row.labels["label"]})
        for row, other in zip(rows, _other_label(rows), strict=True)
    ][5:]
    with open_store(uri) as store:
        append_rows(store, rows, "dev", "en")
        append_rows(store, german[::-1], "dev", "de")
    return uri


def _other_label(rows) -> list[bool]:
    wanted = [at for at, row in enumerate(rows) if row.labels["label"] != "neutral" and at >= 5]
    return [at in wanted[:3] for at in range(len(rows))]


@pytest.fixture(scope="module")
def crossed(trained, translated):
    with open_store(translated) as store:
        return evaluate_crossed(trained, store, "dev")


def test_every_ordered_pair_is_scored_and_what_is_left_out_is_counted(crossed) -> None:
    assert set(crossed.cells) == {(a, b) for a in ("de", "en") for b in ("de", "en")}
    found = {pair: (c.examples, c.unmatched, c.differing) for pair, c in crossed.cells.items()}
    assert found == {
        ("en", "en"): (48, 0, 0),
        ("de", "de"): (43, 0, 0),
        ("en", "de"): (40, 5, 3),
        ("de", "en"): (40, 0, 3),
    }


def test_a_language_with_itself_scores_what_it_scores_uncrossed(
    crossed, trained, translated
) -> None:
    with open_store(translated) as store:
        alone = evaluate_run(trained, store, "dev")
    for lang in ("de", "en"):
        assert crossed.cells[lang, lang].score == pytest.approx(alone.scores[lang].headline)


def test_means_and_gap_are_those_of_the_cells(crossed) -> None:
    score = {pair: cell.score for pair, cell in crossed.cells.items()}
    within, across = (
        sum(score[pair] for pair in pairs) / 2
        for pairs in ((("en", "en"), ("de", "de")), (("en", "de"), ("de", "en")))
    )
    content = crossed.to_json()
    assert content["mean_within"] == pytest.approx(within)
    assert content["mean_across"] == pytest.approx(across)
    assert content["crossing_gap"] == pytest.approx(within - across)
    assert content["pairs"]["en"]["de"]["unmatched"] == 5
    assert content["fields"] == ["premise", "hypothesis"]


def test_the_command_writes_numbers_table_and_heat_map(trained, translated, tmp_path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    arguments = ["evaluate", str(run), "--store", translated, "--split", "dev", "--crossed"]
    result = parsebank(*arguments)
    assert result.exit_code == 0, result.output
    content = json.loads((run / "crossed-dev.json").read_text("utf-8"))
    score = content["pairs"]["de"]["en"]["accuracy"]
    row = next(
        line
        for line in (run / "crossed-dev.md").read_text("utf-8").splitlines()
        if line.startswith("| de |")
    )
    assert f"{score:.4f}" in row
    picture = (run / "crossed-dev.svg").read_text("utf-8")
    for text in ("premise", "hypothesis", "sample, dev: accuracy", f"{100 * score:.1f}"):
        assert f">{text}<" in picture


def test_two_runs_are_compared_over_all_pairs(trained, translated, store_uri, tmp_path) -> None:
    """Differences are those of the cells; both runs have the same examples in each pair."""
    runs = [tmp_path / "a", tmp_path / "b"]
    shutil.copytree(trained, runs[0])
    settings = ["max_steps=2", "evaluate_every=2", "use_syntax=false"]
    with open_store(translated) as own, open_store(store_uri) as store:
        finished(with_settings(RECIPES["sample"](), settings), store, runs[1])
        tables = [evaluate_crossed(run, own, "dev") for run in runs]
    for run, table in zip(runs, tables, strict=True):
        write_table(table, run)
    kept = read_predictions(predictions_file(runs[0], "crossed-dev", "en+de"))
    assert sum(one.right for one in kept) / 40 == tables[0].cells["en", "de"].score
    output = tmp_path / "found.json"
    command = ("compare", *runs, "--crossed", "--split", "dev", "--resamples", "200")
    result = parsebank(*command, "--metric", "accuracy,mcc", "--output", output)
    assert result.exit_code == 0, result.output
    lines = json.loads(output.read_text("utf-8"))["lines"]
    found = {line["lang"]: line for line in lines if line["metric"] == "accuracy"}
    gaps = {
        f"{a}+{b}": cell.score - tables[1].cells[a, b].score
        for (a, b), cell in tables[0].cells.items()
    }
    assert {pair: found[pair]["difference"] for pair in gaps} == pytest.approx(gaps)
    assert found["all"]["difference"] == pytest.approx(sum(gaps.values()) / 4)
    row = next(
        x for x in output.with_suffix(".md").read_text("utf-8").splitlines() if x[:6] == "| en |"
    )
    assert f"{gaps['en+de']:+.4f}" in row
    assert [line for line in result.stdout.splitlines() if line.startswith("de\t+")]
    (runs[1] / "predictions-crossed-dev-en+de.jsonl").unlink()
    result = parsebank(*command)
    assert f"run: parsebank evaluate {runs[1]} --split dev --crossed" in result.output


def test_one_field_cannot_be_crossed(tagger: tuple[Path, str]) -> None:
    run, uri = tagger
    with open_store(uri) as store, pytest.raises(SpecError, match="one field 'text'"):
        evaluate_crossed(run, store, "dev")


ANSWERS = LabelSpec("answers", "spans", field="passage")


@pytest.fixture(scope="module")
def questions_uri(tmp_path_factory, english, tokenizer) -> str:
    """One question about other passages in each language: what is the last word?"""
    uri = str(tmp_path_factory.mktemp("questions") / "store")
    lines, identity = sentences(), english.identity.fingerprint
    handle = (tokenizer.name, tokenizer.fingerprint, tokenizer.special_tokens)
    with open_store(uri) as store:
        store.describe(identity, "parser", {"name": english.identity.name})
        for split, lang, shift in (("train", "en", 0), ("dev", "en", 0), ("dev", "de", 20)):
            spec = DatasetSpec("questions", split, lang, ("question", "passage"), (ANSWERS,))
            rows = [
                _question(english, tokenizer, seq, lang, lines[seq + shift]) for seq in range(12)
            ]
            store.features.append(DatasetHandle(spec, *handle, matrices=False), rows)
    return uri


def _question(english, tokenizer, seq: int, lang: str, passage: str) -> ExampleRow:
    texts, identity = ("Which word comes last?", passage), english.identity.fingerprint
    parses = [english.parse(ParseInput("raw", text), Limits()) for text in texts]
    return ExampleRow(
        seq,
        f"q-{seq}",
        fingerprint([seq, lang]),
        identity,
        texts,
        tuple(fingerprint([identity, text]) for text in texts),
        tuple(segment_features(one, *tokenizer.encode(one.text)) for one in parses),
        {"answers": (SpanLabel(passage.rindex(" ") + 1, len(passage) - 1),)},
    )


def test_answers_are_read_and_compared_in_the_language_of_the_passage(
    questions_uri, tmp_path
) -> None:
    """The questions are the same, so only the passage's language makes a difference."""
    settings = ["task.name=extractive_qa.v1", "data.dataset=questions", "max_steps=10"]
    recipe = with_settings(RECIPES["sample"](), [*settings, "evaluate_every=10"])
    with open_store(questions_uri) as store:
        write_result(result_of(train(recipe, store, tmp_path)), tmp_path)
        crossed = evaluate_crossed(tmp_path, store, "dev")
        alone = evaluate_run(tmp_path, store, "dev")
    scores = {pair: cell.score for pair, cell in crossed.cells.items()}
    assert scores["de", "de"] == scores["en", "de"] == alone.scores["de"].headline
    assert scores["en", "en"] == scores["de", "en"] == alone.scores["en"].headline
    assert scores["en", "en"] != scores["de", "de"]
