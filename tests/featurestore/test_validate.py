from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner

from featurestore import commands
from featurestore.encode.examples import encode_examples
from featurestore.encode.parses import encode_parses
from featurestore.inspect import inspect_store
from featurestore.validate import validate_store


@pytest.fixture
def run():
    app = typer.Typer()
    commands.register(app)
    runner = CliRunner()
    return lambda *words: runner.invoke(app, ["store", *map(str, words)])


def damage(store, handle, rows, column: str, value) -> None:
    """Append a row with one column overwritten, past all checks."""
    card, table = store.features.find("pairs")
    data = encode_examples(card, "train", "en", [rows[0]], matrices=True)
    place = data.schema.get_field_index(column)
    table.append(data.set_column(place, column, pa.array([value], data.schema.field(column).type)))


def test_a_sound_store_has_no_problems(filled, records) -> None:
    filled.parses.append(records)
    report = validate_store(filled)
    assert (report.parses, report.examples, report.matrices) == (40, 100, 200)
    assert report.problem_count == 0


def test_examples_without_matrices_are_sound(store, handle, rows) -> None:
    store.features.append(replace(handle, matrices=False), rows[:3])
    report = validate_store(store)
    assert (report.examples, report.matrices, report.problem_count) == (3, 0, 0)


@pytest.mark.parametrize("column", ["distance", "depth", "ancestor"])
def test_a_stored_matrix_that_differs_is_found(filled, handle, rows, column) -> None:
    damage(filled, handle, rows, column, [b"\x07", b"\x07"])
    (problem,) = validate_store(filled).problems
    assert problem.row == "ex-0"
    assert problem.message == f"the stored {column} differs from the one derived from head"
    assert problem.table.startswith("datasets/pairs/toy-")


def test_vectors_of_the_wrong_size_are_found(filled, handle, rows) -> None:
    damage(filled, handle, rows, "upos", b"\x01")
    (problem,) = validate_store(filled).problems
    assert problem.message.startswith("upos holds 1 numbers")


def test_a_cycle_among_pieces_is_found(filled, handle, rows) -> None:
    size = sum(len(segment) for segment in rows[0].segments)
    heads = np.zeros(size, np.int32)
    heads[0] = 1
    damage(filled, handle, rows, "head", heads.tobytes())
    (problem,) = validate_store(filled).problems
    assert "cycle" in problem.message


def test_a_parse_that_is_no_tree_is_found(store, records) -> None:
    good, bad = records[0], records[1]
    heads = [0] * bad.parse.word_count
    data = encode_parses([good, replace(bad, parse=replace(bad.parse, head=heads))])
    store.parses.table.append(data)
    report = validate_store(store)
    assert report.parses == 2
    (problem,) = report.problems
    assert (problem.table, problem.row) == ("parses", bad.key)
    assert "exactly one word may be the root" in problem.message


def test_the_command_says_what_it_checked_and_fails_on_problems(filled, handle, rows, run) -> None:
    done = run("validate", "--store", filled.uri)
    assert done.exit_code == 0
    assert "100 examples, 200 segments with matrices checked: 0 problems" in done.output
    damage(filled, handle, rows, "depth", [b"", b""])
    done = run("validate", "--store", filled.uri)
    assert done.exit_code == 1
    assert "ex-0  the stored depth differs" in done.output


def test_inspect_lists_tables_with_their_sizes(filled, records, run) -> None:
    filled.parses.append(records)
    tables = {table.table: table for table in inspect_store(filled)}
    assert tables["parses"].rows == 40
    assert tables["drops"].version == -1
    (pairs,) = (table for name, table in tables.items() if name.startswith("datasets/pairs"))
    assert (pairs.version, pairs.files, pairs.rows) == (4, 4, 100)
    assert pairs.size > 1000
    printed = json.loads(run("inspect", "--store", filled.uri, "--json").output)
    assert printed == [table.to_json() for table in inspect_store(filled)]
    assert "parses" in run("inspect", "--store", filled.uri).output


def test_datasets_are_listed(filled, run) -> None:
    (printed,) = json.loads(run("datasets", "--store", filled.uri, "--json").output)
    assert printed["parts"] == [{"split": "train", "lang": "en", "rows": 100}]
    assert "pairs" in run("datasets", "--store", filled.uri).output


def test_sql_prints_rows(filled, run) -> None:
    query = "select split, count(*) as n from examples group by all"
    done = run("sql", query, "--store", filled.uri, "--json")
    assert json.loads(done.output) == [{"split": "train", "n": 100}]
    assert "train" in run("sql", query, "--store", filled.uri).output


def test_sql_mistakes_are_told_without_a_trace(filled, run) -> None:
    done = run("sql", "select nothing from examples", "--store", filled.uri)
    assert done.exit_code == 2
    assert "nothing" in done.output
    assert "Traceback" not in done.output


def test_compact_joins_files(filled, run) -> None:
    done = run("compact", "--store", filled.uri)
    assert done.exit_code == 0
    assert "5 files became 2" in done.output
    assert len(filled.dataset("pairs")) == 100
