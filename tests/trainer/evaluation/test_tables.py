"""Tables of systems, languages and seeds: against numbers computed here, and from trained runs."""

from __future__ import annotations

import csv
import json
import random
import shutil
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from syntax.errors import SpecError, UnknownNameError
from tests.trainer.command import need_no_torch, parsebank
from trainer.evaluation.compare import compare
from trainer.evaluation.predictions import Prediction, predictions_file, write_predictions
from trainer.evaluation.tables import score_table, systems_of
from trainer.evaluation.typeset import comma_separated, latex, markdown

Made = Callable[..., Path]


@pytest.fixture
def make(tmp_path) -> Made:
    """A scored run as ``parsebank evaluate`` leaves it, with predictions of our choice."""

    def write(
        folder: str, seed: int, shares: dict[str, float], name: str = "xnli", **options: Any
    ) -> Path:
        run = tmp_path / folder
        run.mkdir(parents=True)
        recipe = {
            "name": name,
            "model": {"use_syntax": True, **options},
            "training": {"seed": seed},
        }
        (run / "result.json").write_text(json.dumps({"recipe": recipe}), "utf-8")
        languages = {}
        for lang, share in shares.items():
            rng = random.Random(f"{folder}{lang}")
            right = [rng.random() < share for _ in range(80)]
            predictions = [
                Prediction(f"x{at}", "yes", "yes" if one else "no", one, {"accuracy": (one, 1.0)})
                for at, one in enumerate(right)
            ]
            write_predictions(predictions, predictions_file(run, "test", lang))
            languages[lang] = {
                "accuracy": sum(right) / 80,
                "loss": 0.5,
                "baseline": {"name": "majority class", "metric": "accuracy", "score": 0.35},
            }
        content = {"dataset": "xnli", "metric": "accuracy", "languages": languages}
        (run / "evaluation-test.json").write_text(json.dumps(content), "utf-8")
        return run

    return write


@pytest.fixture
def runs(make, tmp_path) -> Path:
    """Two systems of three seeds in two languages."""
    for seed in (1, 2, 3):
        make(f"runs/with/seed{seed}", seed, {"de": 0.9, "en": 0.8})
        make(f"runs/without/seed{seed}", seed, {"de": 0.6, "en": 0.8}, use_syntax=False)
    return tmp_path / "runs"


WITH, WITHOUT = "xnli (model.use_syntax=true)", "xnli (model.use_syntax=false)"


def accuracy(run: Path, lang: str) -> float:
    content = json.loads((run / "evaluation-test.json").read_text("utf-8"))
    return content["languages"][lang]["accuracy"]


def test_runs_that_differ_in_the_seed_alone_are_one_system(runs) -> None:
    assert systems_of([runs]) == {
        WITH: {seed: runs / "with" / f"seed{seed}" for seed in (1, 2, 3)},
        WITHOUT: {seed: runs / "without" / f"seed{seed}" for seed in (1, 2, 3)},
    }
    assert list(systems_of([runs / "with"])) == ["xnli"]
    # A folder that is given twice holds the same runs.
    assert systems_of([runs, runs / "with"]) == systems_of([runs])


def test_cells_are_mean_and_sample_deviation_over_seeds(runs) -> None:
    table = score_table([runs])
    assert table.columns == ["de", "en", "mean"]
    for name, folder in ((WITH, "with"), (WITHOUT, "without")):
        by_lang = {
            lang: [accuracy(runs / folder / f"seed{seed}", lang) for seed in (1, 2, 3)]
            for lang in ("de", "en")
        }
        by_lang["mean"] = [mean(pair) for pair in zip(by_lang["de"], by_lang["en"], strict=True)]
        for column, scores in by_lang.items():
            cell = table.rows[name][column]
            assert list(cell.scores.values()) == pytest.approx(scores)
            assert (cell.mean, cell.deviation) == pytest.approx((mean(scores), stdev(scores)))
            assert cell.test is None
    assert table.unlearned == pytest.approx({"de": 0.35, "en": 0.35, "mean": 0.35})
    assert table.notes == []


@pytest.mark.parametrize("named", [WITHOUT, "folder"])
def test_tests_are_those_of_the_comparison_of_two_systems(runs, named) -> None:
    baseline = str(runs / "without") if named == "folder" else named
    table = score_table([runs], baseline=baseline, resamples=300)
    assert table.baseline == WITHOUT
    lines = compare(runs / "with", runs / "without", "test", resamples=300).lines
    for line, column in zip(lines, ("de", "en", "mean"), strict=True):
        test = table.rows[WITH][column].test
        assert test.difference == line.difference
        assert table.rows[WITHOUT][column].test is None
    assert table.rows[WITH]["de"].test.difference.permutation < 0.01
    assert table.rows[WITH]["en"].test.difference.permutation > 0.05


def test_what_is_missing_is_shown_as_missing_and_said(make, tmp_path) -> None:
    make("a/seed1", 1, {"de": 0.9, "en": 0.9})
    make("a/seed2", 2, {"en": 0.9})
    make("b/seed1", 1, {"en": 0.5}, use_syntax=False)
    unscored = make("b/seed2", 2, {"en": 0.5}, use_syntax=False)
    (unscored / "evaluation-test.json").unlink()
    table = score_table([tmp_path], baseline=WITH, resamples=100)
    assert "mean" not in table.rows[WITHOUT]
    assert "de" not in table.rows[WITHOUT]
    assert list(table.rows[WITH]["mean"].scores) == [1]
    notes = "\n".join(table.notes)
    for said in (
        f"{unscored} was not scored on test: parsebank evaluate {unscored} --split test",
        f"{WITH} has no score in de of the seeds 2",
        f"{WITHOUT} has no score in de of the seeds 1, 2",
        f"{WITHOUT} is tested against {WITH} on the seeds 1 alone",
    ):
        assert said in notes
    assert f"| {WITHOUT} | – |" in markdown(table)
    assert all(note in markdown(table) for note in table.notes)
    assert all(f"% {note}" in latex(table) for note in table.notes)
    row = next(r for r in csv.DictReader(StringIO(comma_separated(table))) if r["seeds"] == "0")
    assert (row["system"], row["language"], row["mean"]) == (WITHOUT, "de", "")


def test_a_score_that_is_no_number_is_missing(make, tmp_path) -> None:
    run = make("a", 0, {"en": 0.9})
    path = run / "evaluation-test.json"
    path.write_text(path.read_text("utf-8").replace(str(accuracy(run, "en")), "null"), "utf-8")
    table = score_table([tmp_path])
    assert table.rows == {"xnli": {}}
    assert table.notes == ["xnli has no score in en of the seeds 0"]


def test_systems_without_a_common_seed_are_not_tested(make, tmp_path) -> None:
    make("a", 1, {"en": 0.9})
    make("b", 2, {"en": 0.5}, use_syntax=False)
    table = score_table([tmp_path], baseline=WITHOUT)
    assert table.rows[WITH]["en"].test is None
    assert table.notes == [f"{WITH} and {WITHOUT} share no seed, so they are not tested"]


def test_tables_that_cannot_be_made_are_refused(make, runs, tmp_path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SpecError, match="no finished run"):
        score_table([tmp_path / "empty"])
    with pytest.raises(SpecError, match="no run was scored on dev; run: parsebank evaluate"):
        score_table([runs], "dev")
    with pytest.raises(UnknownNameError, match="accuracy, loss"):
        score_table([runs], metric="f2")
    with pytest.raises(UnknownNameError, match="use_syntax=false"):
        score_table([runs], baseline="other")
    with pytest.raises(SpecError, match="has runs of several systems"):
        score_table([runs], baseline=str(runs))
    with pytest.raises(UnknownNameError, match="accuracy, loss"):
        score_table([runs], metric="baseline")
    shutil.copytree(runs / "with" / "seed1", tmp_path / "again")
    with pytest.raises(SpecError, match="of one recipe and of the seed 1"):
        score_table([runs, tmp_path / "again"])
    other = make("other", 1, {"en": 0.5}, name="pawsx")
    path = other / "evaluation-test.json"
    path.write_text(path.read_text("utf-8").replace('"dataset": "xnli"', '"dataset": "pawsx"'))
    with pytest.raises(SpecError, match="datasets pawsx, xnli"):
        score_table([runs, other])


def test_markdown_has_percent_deviation_and_stars(runs) -> None:
    table = score_table([runs], baseline=WITHOUT, resamples=300)
    lines = markdown(table, by_seed=True).splitlines()
    cell = table.rows[WITH]["de"]
    shown = f"{100 * cell.mean:.2f} ± {100 * cell.deviation:.2f}\\*\\*"
    (row,) = [line for line in lines if line.startswith(f"| {WITH} |")]
    assert row.split(" | ")[1] == shown
    assert "*" not in row.split(" | ")[2]
    assert "| majority class | 35.00 | 35.00 | 35.00 |" in lines
    seed = f"| {WITH}, seed 2 | {100 * cell.scores[2]:.2f} |"
    assert sum(line.startswith(seed) for line in lines) == 1


def test_csv_has_every_number(runs) -> None:
    table = score_table([runs], baseline=WITHOUT, resamples=300)
    rows = list(csv.DictReader(StringIO(comma_separated(table))))
    assert len(rows) == 3 * 3
    assert {None} & set().union(*rows) == set()
    (row,) = [r for r in rows if (r["system"], r["language"]) == (WITH, "en")]
    cell = table.rows[WITH]["en"]
    assert float(row["mean"]) == cell.mean
    assert float(row["deviation"]) == cell.deviation
    assert float(row["p_permutation"]) == cell.test.difference.permutation
    assert [float(row[f"seed{seed}"]) for seed in (1, 2, 3)] == list(cell.scores.values())


def test_latex_is_escaped_and_has_as_many_columns_as_cells(runs) -> None:
    text = latex(score_table([runs], baseline=WITHOUT, resamples=300))
    lines = text.splitlines()
    assert r"xnli (model.use\_syntax=true)" in text
    assert r"\begin{tabular}{lccc}" in lines
    assert [line for line in lines if line.endswith("rule")] == [
        *(r"\toprule", r"\midrule", r"\bottomrule")
    ]
    body = [line for line in lines if line.endswith(r" \\")]
    assert {line.count(" & ") for line in body} == {3}
    assert "$^{**}$" in text
    assert "–" not in text


def test_the_command_prints_and_writes_tables(runs, tmp_path) -> None:
    shown = parsebank("tables", runs, "--baseline", WITHOUT, "--resamples", "200")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("# xnli, test: accuracy\n")
    for form in ("csv", "latex"):
        path = tmp_path / "out" / f"table.{form}"
        made = parsebank("tables", runs, "--format", form, "--output", path)
        assert made.exit_code == 0, made.output
        assert made.stdout == ""
        assert "xnli" in path.read_text("utf-8")


def test_tables_import_no_torch(runs) -> None:
    assert need_no_torch(["tables", runs])


@pytest.mark.slow
def test_trained_runs_make_a_table(store_uri, tmp_path) -> None:
    for name in ("true", "false"):
        settings = ["--set", f"use_syntax={name}", "--set", "batch_size=8", "--max-steps", "2"]
        output = tmp_path / "runs" / name
        command = ["train", "sample", "--store", store_uri, "--seed", "1,2", "--output", output]
        made = parsebank(*command, *settings)
        assert made.exit_code == 0, made.output
        scored = parsebank("evaluate", output, "--store", store_uri, "--split", "dev")
        assert scored.exit_code == 0, scored.output
    base = ("--baseline", tmp_path / "runs" / "false", "--resamples", "200")
    made = parsebank("tables", tmp_path / "runs", "--split", "dev", "--format", "csv", *base)
    assert made.exit_code == 0, made.output
    assert made.stderr == ""
    rows = list(csv.DictReader(StringIO(made.stdout)))
    systems = {row["system"] for row in rows}
    assert systems == {
        "majority class",
        "sample (model.use_syntax=true)",
        "sample (model.use_syntax=false)",
    }
    assert {row["language"] for row in rows} == {"de", "en", "fr", "mean"}
    one = next(r for r in rows if r["language"] == "en" and "true" in r["system"])
    kept = json.loads((tmp_path / "runs/true/seed2/evaluation-dev.json").read_text("utf-8"))
    assert float(one["seed2"]) == kept["languages"]["en"]["accuracy"]
