"""The reports on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from featurestore.commands import register
from syntax.errors import ParsebankError


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


def test_stats(run) -> None:
    assert "two" in run("stats")
    (first, second) = json.loads(run("stats", "--json"))
    assert {first["parser"], second["parser"]} == {"two", records_parser(run)}


def records_parser(run) -> str:
    return next(g["parser"] for g in json.loads(run("stats", "--json")) if g["parser"] != "two")


def test_diff(run) -> None:
    parser = records_parser(run)
    assert "5 texts, 5 of them the same" in run("diff", "two", parser)
    assert json.loads(run("diff", "two", parser, "--json"))["scores"]["LAS"]["f1"] == 100.0


def test_word_order(run) -> None:
    assert json.loads(run("word-order", "--json", "--types", "3"))["distances"] == {"en": {"en": 0}}


def test_export(run, tmp_path: Path) -> None:
    assert "100 examples in 1 files" in run("export", str(tmp_path / "out"), "--dataset", "pairs")
    file = tmp_path / "trees.conllu"
    assert "40 texts" in run("export", str(file), "--dataset", "pairs")
    assert file.read_text(encoding="utf-8").count("# newdoc id") == 40
