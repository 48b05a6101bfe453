"""The reports on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from syntax.errors import ParsebankError, StoreFormatError
from tests.featurestore.conftest import PARSER


@pytest.fixture
def shown(filled, run, records, make_record):
    """Output of a command about the hundred pairs, their parses, and five by another parser."""
    filled.parses.append(records)
    filled.parses.append([make_record(r.parse, n, "b" * 32) for n, r in enumerate(records[:5])])
    filled.describe("b" * 32, "parser", {"name": "two"})

    def shown(*words: str) -> str:
        result = run(*words)
        if isinstance(result.exception, ParsebankError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.output

    return shown


@pytest.mark.slow
def test_stats_command_prints_a_row_per_parser(shown) -> None:
    assert "two" in shown("stats")
    parsers = {one["fingerprint"]: one["parser"] for one in json.loads(shown("stats", "--json"))}
    assert parsers == {"b" * 32: "two", PARSER: PARSER}


def test_diff_command_prints_scores_and_confusions(shown) -> None:
    assert shown("diff", "two", PARSER).startswith(
        "texts\t5\nidentical\t5\ntexts, gold\t5\n\nmetric\tF1\n"
    )
    assert json.loads(shown("diff", "two", PARSER, "--json"))["scores"]["LAS"]["f1"] == 100.0


def test_word_order_command_prints_distances(shown) -> None:
    assert json.loads(shown("word-order", "--json", "--types", "3"))["distances"] == {
        "en": {"en": 0}
    }


def test_word_order_takes_the_published_types(shown) -> None:
    options = ("--types", "published", "--missing", "as_published")
    assert len(json.loads(shown("word-order", "--json", *options))["types"]) == 52
    assert shown("word-order", *options, "--format", "csv") == "distance,en\nen,0.0\n"


@pytest.mark.parametrize(
    "options", [("--types", "0"), ("--types", "many"), ("--linkage", "single"), ("--missing", "x")]
)
def test_word_order_refuses_options_that_do_not_fit(run, options) -> None:
    done = run("word-order", *options)
    assert done.exit_code == 2
    assert options[0] in re.sub(r"\x1b\[[\d;]*m", "", done.output)


def test_dependency_distances_are_a_table_in_markdown_csv_and_json(shown) -> None:
    markdown = shown("word-order", "--dependency-distances", "--format", "markdown").splitlines()
    assert markdown[:2] == [
        "| lang | <-2 | -2 | -1 | 1 | 2 | >2 | words |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    cells = markdown[2].strip("| ").split(" | ")
    csv = shown("word-order", "--dependency-distances", "--format", "csv").splitlines()
    assert csv == ["lang,<-2,-2,-1,1,2,>2,words", ",".join(cells)]
    (row,) = json.loads(shown("word-order", "--dependency-distances", "--json"))
    assert [str(value) for value in row.values()] == cells
    assert sum(list(row.values())[1:-1]) == pytest.approx(100, abs=0.05)


def test_export_command_writes_parquet_and_conllu(shown, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    exported = f"path\t{out}\nexamples\t100\nfiles\t1\n"
    assert shown("export", out, "--dataset", "pairs") == exported
    file = tmp_path / "trees.conllu"
    written = json.loads(shown("export", str(file), "--dataset", "pairs", "--json"))
    assert written == {"path": str(file), "texts": 40, "missing": 0}
    assert file.read_text(encoding="utf-8").count("# newdoc id") == 40


def test_export_takes_all_splits_and_versions_by_name(
    shown, filled, make_handle, rows, tmp_path: Path
) -> None:
    assert "paper: version 4" in shown("pin", "paper", "--dataset", "pairs")
    filled.features.append(make_handle(split="dev"), rows[:7])
    assert "examples\t107" in shown("export", str(tmp_path / "all"), "--dataset", "pairs")
    assert "examples\t7" in shown(
        "export", str(tmp_path / "1"), "--dataset", "pairs", "--split", "dev"
    )
    for version in ("paper", "4"):
        path = str(tmp_path / version)
        assert "examples\t100" in shown("export", path, "--dataset", "pairs", "--version", version)
    assert "again: version 4" in shown("pin", "again", "--dataset", "pairs", "--version", "paper")


def test_export_reports_missing_parses(shown, filled, records, tmp_path: Path) -> None:
    filled.parses.table.delete("key", [record.key for record in records[:3]])
    done = shown("export", str(tmp_path / "trees.conllu"), "--dataset", "pairs")
    assert "texts\t37" in done
    assert "3 more are not there" in done


@pytest.mark.parametrize(
    "command", ["validate", "stats", "compact", "vacuum", "inspect", "pins", "datasets"]
)
def test_a_folder_that_is_no_store_is_named(run, store, command) -> None:
    done = run(command)
    assert isinstance(done.exception, StoreFormatError)
    assert f"there is no store at {store.uri}" in str(done.exception)


@pytest.mark.parametrize("command", ["stats", "pins", "datasets"])
def test_empty_reports_print_their_columns(store, run, command) -> None:
    store.describe("b" * 32, "parser", {"name": "two"})
    (header,) = run(command).stdout.splitlines()
    assert len(header.split("\t")) > 3


@pytest.mark.slow
def test_languages_and_their_parsers_are_listed_with_commas(
    shown, filled, make_handle, make_row, records, tmp_path
) -> None:
    french = [make_row(n, records[:2], parser="b" * 32) for n in range(3)]
    filled.features.append(make_handle(lang="fr"), french)
    for parser in (("en:gold,fr:two",), ("en:gold", "--parser", "fr:two")):
        filled.describe(records[0].parser, "parser", {"name": "gold"})
        options = ("--dataset", "pairs", "--lang", "en,fr", "--parser", *parser)
        out = str(tmp_path / str(len(parser)))
        assert "examples\t103\nfiles\t2\n" in shown("export", out, *options)
        name = f"noise{len(parser)}"
        noisy = shown("noise", "pairs", "--share", "0.1", "--name", name, *options[2:])
        assert "103" in noisy
    (stats,) = json.loads(shown("stats", "--parser", "en:two", "--lang", "en", "--json"))
    assert stats["parser"] == "two"
    order = shown("word-order", "--json", "--min-count", "1", "--parser", "en:two")
    assert list(json.loads(order)["following"]) == ["en"]
    with pytest.raises(ParsebankError, match="'fr' of dataset 'pairs' was parsed by two"):
        shown("export", str(tmp_path / "no"), *options[:4], "--parser", "gold")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["datasets", "stats", "word-order"])
@pytest.mark.parametrize("width", ["30", "400"])
def test_a_terminal_of_any_width_shows_every_column_and_name(
    shown, monkeypatch, command, width
) -> None:
    words = re.findall(r"(?<!\S)[a-z]\S{,19}(?!\S)", shown(command))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", width)
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown(command))
    assert len(words) > 1
    assert set(words) <= set(text.split())
    assert "…" not in text
