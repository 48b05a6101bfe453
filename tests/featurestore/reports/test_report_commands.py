"""The reports on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from featurestore.commands import register
from syntax.errors import ParsebankError, StoreFormatError


@pytest.fixture
def run(filled, records, make_record):
    filled.parses.append(records)
    filled.parses.append([make_record(r.parse, n, "b" * 32) for n, r in enumerate(records[:5])])
    filled.describe("b" * 32, "parser", {"name": "two"})
    app = typer.Typer()
    register(app)

    def invoke(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["store", *arguments, "--store", filled.uri])
        if isinstance(result.exception, ParsebankError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.output

    return invoke


def test_stats_command_prints_a_row_per_parser(run) -> None:
    assert "two" in run("stats")
    (first, second) = json.loads(run("stats", "--json"))
    assert {first["parser"], second["parser"]} == {"two", records_parser(run)}


def records_parser(run) -> str:
    return next(g["parser"] for g in json.loads(run("stats", "--json")) if g["parser"] != "two")


def test_diff_command_prints_scores_and_confusions(run) -> None:
    parser = records_parser(run)
    assert run("diff", "two", parser).startswith(
        "texts\t5\nidentical\t5\ntexts, gold\t5\n\nmetric\tF1\n"
    )
    assert json.loads(run("diff", "two", parser, "--json"))["scores"]["LAS"]["f1"] == 100.0


def test_word_order_command_prints_distances(run) -> None:
    assert json.loads(run("word-order", "--json", "--types", "3"))["distances"] == {"en": {"en": 0}}


def test_word_order_takes_the_published_types(run) -> None:
    options = ("--types", "published", "--missing", "as_published")
    assert len(json.loads(run("word-order", "--json", *options))["types"]) == 52
    assert run("word-order", *options, "--format", "csv") == "distance,en\nen,0.0\n"


@pytest.mark.parametrize(
    "options", [("--types", "0"), ("--types", "many"), ("--linkage", "single"), ("--missing", "x")]
)
def test_word_order_refuses_options_that_do_not_fit(filled, options) -> None:
    app = typer.Typer()
    register(app)
    done = CliRunner().invoke(app, ["store", "word-order", *options, "--store", filled.uri])
    assert done.exit_code == 2
    assert options[0] in re.sub(r"\x1b\[[\d;]*m", "", done.output)


def test_dependency_distances_are_a_table_in_markdown_csv_and_json(run) -> None:
    markdown = run("word-order", "--dependency-distances", "--format", "markdown").splitlines()
    assert markdown[:2] == [
        "| lang | <-2 | -2 | -1 | 1 | 2 | >2 | words |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    cells = markdown[2].strip("| ").split(" | ")
    csv = run("word-order", "--dependency-distances", "--format", "csv").splitlines()
    assert csv == ["lang,<-2,-2,-1,1,2,>2,words", ",".join(cells)]
    (row,) = json.loads(run("word-order", "--dependency-distances", "--json"))
    assert [str(value) for value in row.values()] == cells
    assert sum(list(row.values())[1:-1]) == pytest.approx(100, abs=0.05)


def test_export_command_writes_parquet_and_conllu(run, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    exported = f"path\t{out}\nexamples\t100\nfiles\t1\n"
    assert run("export", out, "--dataset", "pairs") == exported
    file = tmp_path / "trees.conllu"
    written = json.loads(run("export", str(file), "--dataset", "pairs", "--json"))
    assert written == {"path": str(file), "texts": 40, "missing": 0}
    assert file.read_text(encoding="utf-8").count("# newdoc id") == 40


def test_export_takes_all_splits_and_versions_by_name(
    run, filled, make_handle, rows, tmp_path: Path
) -> None:
    assert "paper: version 4" in run("pin", "paper", "--dataset", "pairs")
    filled.features.append(make_handle(split="dev"), rows[:7])
    assert "examples\t107" in run("export", str(tmp_path / "all"), "--dataset", "pairs")
    assert "examples\t7" in run(
        "export", str(tmp_path / "1"), "--dataset", "pairs", "--split", "dev"
    )
    for version in ("paper", "4"):
        path = str(tmp_path / version)
        assert "examples\t100" in run("export", path, "--dataset", "pairs", "--version", version)
    assert "again: version 4" in run("pin", "again", "--dataset", "pairs", "--version", "paper")


def test_export_reports_missing_parses(run, filled, records, tmp_path: Path) -> None:
    filled.parses.table.delete("key", [record.key for record in records[:3]])
    done = run("export", str(tmp_path / "trees.conllu"), "--dataset", "pairs")
    assert "texts\t37" in done
    assert "3 more are not there" in done


@pytest.mark.parametrize(
    "command", ["validate", "stats", "compact", "vacuum", "inspect", "pins", "datasets"]
)
def test_a_folder_that_is_no_store_is_named(tmp_path: Path, command) -> None:
    app = typer.Typer()
    register(app)
    done = CliRunner().invoke(app, ["store", command, "--store", str(tmp_path)])
    assert isinstance(done.exception, StoreFormatError)
    assert f"there is no store at {tmp_path}" in str(done.exception)


@pytest.mark.parametrize("command", ["stats", "pins", "datasets"])
def test_empty_reports_print_their_columns(store, command) -> None:
    store.describe("b" * 32, "parser", {"name": "two"})
    app = typer.Typer()
    register(app)
    done = CliRunner().invoke(app, ["store", command, "--store", store.uri])
    (header,) = done.stdout.splitlines()
    assert len(header.split("\t")) > 3


@pytest.mark.slow
def test_languages_and_their_parsers_are_listed_with_commas(
    run, filled, make_handle, make_row, records, tmp_path
) -> None:
    french = [make_row(n, records[:2], parser="b" * 32) for n in range(3)]
    filled.features.append(make_handle(lang="fr"), french)
    for parser in (("en:gold,fr:two",), ("en:gold", "--parser", "fr:two")):
        filled.describe(records[0].parser, "parser", {"name": "gold"})
        options = ("--dataset", "pairs", "--lang", "en,fr", "--parser", *parser)
        out = str(tmp_path / str(len(parser)))
        assert "examples\t103\nfiles\t2\n" in run("export", out, *options)
        name = f"noise{len(parser)}"
        noisy = run("noise", "pairs", "--share", "0.1", "--name", name, *options[2:])
        assert "103" in noisy
    (stats,) = json.loads(run("stats", "--parser", "en:two", "--lang", "en", "--json"))
    assert stats["parser"] == "two"
    order = run("word-order", "--json", "--min-count", "1", "--parser", "en:two")
    assert list(json.loads(order)["following"]) == ["en"]
    with pytest.raises(ParsebankError, match="'fr' of dataset 'pairs' was parsed by two"):
        run("export", str(tmp_path / "no"), *options[:4], "--parser", "gold")


@pytest.mark.parametrize("command", ["datasets", "stats", "word-order"])
@pytest.mark.parametrize("width", ["30", "400"])
def test_a_terminal_of_any_width_shows_every_column_and_name(
    run, monkeypatch, command, width
) -> None:
    words = re.findall(r"(?<!\S)[a-z]\S{,19}(?!\S)", run(command))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", width)
    text = re.sub(r"\x1b\[[0-9;]*m", "", run(command))
    assert len(words) > 1
    assert set(words) <= set(text.split())
    assert "…" not in text
