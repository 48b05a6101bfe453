from __future__ import annotations

import json
import os
from base64 import b64decode
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from featurestore import Drop, StatedDataset, WordStates, commands, open_store
from featurestore.maintenance.inspect import inspect_store
from featurestore.maintenance.repair import repair_store
from featurestore.maintenance.validate import validate_store
from featurestore.tables.encode.examples import encode_examples
from featurestore.tables.encode.packed import pack_record
from featurestore.tables.encode.parses import encode_parses
from featurestore.tables.states import STATES, states_tables
from syntax.errors import SpecError

from .conftest import PARSER, TOKENIZER


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


@pytest.mark.parametrize("packed", [pack_record, lambda record: b"\x01"])
def test_a_packed_record_that_differs_from_its_columns_is_found(store, records, packed) -> None:
    data = encode_parses(records[:2])
    other = replace(records[1], lang="de")
    column = pa.array([data["record"][0].as_py(), packed(other)], pa.binary())
    store.parses.table.append(data.set_column(data.num_columns - 1, "record", column))
    (problem,) = validate_store(store).problems
    assert (problem.table, problem.row) == ("parses", other.key)
    assert "packed record" in problem.message


def test_damaged_files_are_problems_among_others(filled, handle, rows, records, run) -> None:
    filled.parses.append(records[:20])
    filled.parses.append(records[20:])
    damage(filled, handle, rows, "depth", [b"", b""])
    first, second = sorted(Path(filled.uri, "parses").glob("*.parquet"))
    content = bytearray(first.read_bytes())
    content[4:2000] = bytes(byte ^ 255 for byte in content[4:2000])
    first.write_bytes(content)
    second.write_bytes(b"")
    with open_store(filled.uri) as store:
        report = validate_store(store, deep=True)
    assert report.examples == 101
    assert report.unreadable == 2
    messages = {problem.row: problem.message for problem in report.problems}
    assert f"{first.name} in {filled.uri}/parses is damaged" in messages[first.name]
    assert f"{second.name} in {filled.uri}/parses is damaged" in messages[second.name]
    lost = [row for row, message in messages.items() if message.endswith("is not in the store")]
    assert set(lost) >= {row.example_id for row in rows[1:]} & set(messages)
    assert report.problem_count > 100
    assert run("validate", "--deep", "--store", filled.uri).exit_code == 1
    assert run("stats", "--store", filled.uri).exit_code == 0  # of what can be read


def test_a_pin_of_a_version_that_is_gone_is_a_problem(filled) -> None:
    data = filled.dataset("pairs")
    data.pin("paper")
    filled.compact()
    assert validate_store(filled).problems == []
    Path(data.reader.location.uri, data.rows.paths[0]).unlink()
    (problem,) = validate_store(filled).problems
    assert (problem.table, problem.row) == ("pins", "paper")
    assert problem.message.startswith("1 of the 4 files of version 4 of pairs/toy-")


@pytest.fixture
def every_table(filled, records):
    """A store with rows in each of its tables."""
    filled.parses.append(records)
    filled.drops.append(
        [
            Drop("pairs", TOKENIZER, "train", "en", "job", f"bad-{n}", "", "example", f"{n}" * 50)
            for n in range(200)
        ]
    )
    filled.describe(PARSER, "parser", {"name": "toy"})
    data = filled.dataset("pairs")
    data.pin("paper")
    states = StatedDataset(filled, data, {"encoder": "e"}, 2)
    none = WordStates(np.zeros(2, np.int32), np.zeros((0, 2), np.float16))
    states.write(states.without_states(), [none] * len(data))
    return filled


def tear(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def zero_pages(file: Path) -> None:
    content = file.read_bytes()
    end = len(content) // 2
    file.write_bytes(content[:4] + bytes(end - 4) + content[end:])


@pytest.mark.parametrize("harm", [tear, zero_pages, Path.unlink])
@pytest.mark.parametrize("table", ["states", "drops", "pins", "fingerprints"])
def test_damaged_files_of_every_table_are_found(every_table, run, table, harm) -> None:
    uri = every_table.uri
    assert run("validate", "--store", uri).exit_code == 0
    file = next(Path(uri, table).rglob("*.parquet"))
    harm(file)
    with open_store(uri) as store:
        report = validate_store(store)
        (lost,) = repair_store(store).files
    (problem,) = report.problems
    assert (report.unreadable, problem.table, problem.row) == (1, lost.table, lost.path)
    assert problem.table.split("/")[0] == table
    shown = run("validate", "--store", uri)
    assert (shown.exit_code, file.name in shown.stdout) == (1, True)


def test_a_damaged_page_of_a_label_is_found(filled, run) -> None:
    file = next(Path(filled.uri, "datasets").rglob("*.parquet"))
    group = pq.ParquetFile(file).metadata.row_group(0)
    (place,) = (
        column.data_page_offset
        for column in map(group.column, range(group.num_columns))
        if column.path_in_schema == "note"
    )
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(b"\xff" * 16)
    with open_store(filled.uri) as store:
        (problem,) = validate_store(store).problems
    assert file.name in problem.row


def test_states_without_a_key_are_found(every_table) -> None:
    ((name, table),) = states_tables(every_table.root)
    table.append(pa.table([["x"], [[1]], [b"\0\0"]], schema=STATES.schema))
    (problem,) = validate_store(every_table).problems
    assert (problem.table, problem.row) == (name, "x")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("label", "maybe", "label label is 'maybe'; expected one of entailment"),
        ("input_ids", -1, "input_ids holds -1; ids of the tokenizer are 0 to 4999"),
        ("input_ids", 5000, "input_ids holds 5000; ids of the tokenizer are 0 to 4999"),
    ],
)
def test_unknown_labels_and_ids_are_found(
    filled, handle, rows, records, column, value, message
) -> None:
    if column == "input_ids":
        size = sum(len(segment) for segment in rows[0].segments)
        value = np.full(size, value, np.int32).tobytes()
    damage(filled, handle, rows, column, value)
    filled.parses.append(records)
    messages = [problem.message for problem in validate_store(filled, deep=True).problems]
    assert any(found.startswith(message) for found in messages)


def test_rows_and_places_that_repeat_are_counted(filled, handle, rows, records, run) -> None:
    filled.parses.append(records)
    filled.parses.append(records[:2])
    filled.features.append(handle, rows[:1])
    other = replace(rows[5], example_id="another", example_key="e" * 32)
    filled.features.append(handle, [other])
    report = validate_store(filled)
    assert (report.repeated, report.same_place, report.problem_count) == (3, 1, 0)
    assert "3 rows are there more than once" in run("validate", "--store", filled.uri).output


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


def test_sql_errors_are_those_of_the_query(filled, run) -> None:
    done = run("sql", "select nothing from examples", "--store", filled.uri)
    assert done.exit_code == 1
    assert isinstance(done.exception, SpecError)
    assert '"nothing" not found' in str(done.exception)


def test_sql_prints_times_with_a_zone(filled, run) -> None:
    query = "select now() as n, [now()] as n, {'at': now()} as s, 1 as x"
    done = run("sql", query, "--store", filled.uri, "--json")
    (row,) = json.loads(done.output)
    assert (row["n_1"], row["s"], row["x"]) == ([row["n"]], {"at": row["n"]}, 1)
    assert datetime.fromisoformat(row["n"]).tzinfo is not None


@pytest.mark.parametrize("text", ["[/foo]", "see [NP the cat]", ":smile: [bold]"])
def test_sql_prints_texts_in_brackets_as_they_are(filled, run, text) -> None:
    done = run("sql", f"select '{text}' as \"[b]\"", "--store", filled.uri)
    assert done.exit_code == 0
    assert text in done.output
    assert "[b]" in done.output


def test_sql_gives_every_column_and_no_number_that_json_lacks(filled, run) -> None:
    query = "select 1 as n, 2 as n, 'nan'::float as x, ['inf'::float, 1] as y"
    done = run("sql", query, "--store", filled.uri, "--json")
    assert json.loads(done.output) == [{"n": 1, "n_1": 2, "x": None, "y": [None, 1.0]}]


@pytest.mark.parametrize("query", ["", " -- all of it"])
def test_sql_refuses_an_empty_query(filled, run, query) -> None:
    done = run("sql", query, "--store", filled.uri)
    assert done.exit_code == 1
    assert "a query is one SELECT" in str(done.exception)


def test_sql_prints_matrices_as_lists_and_bytes_as_base64(filled, run) -> None:
    query = "select segments.depth, segments.ancestor, head from segments limit 1"
    query = f"select s.*, e.upos from ({query}) s, (from examples limit 1) e"
    done = run("sql", query, "--store", filled.uri, "--json")
    (row,) = json.loads(done.output)
    assert len(row["ancestor"]) == len(row["depth"]) == len(row["head"])
    assert "\\x" not in done.output
    assert len(b64decode(row["upos"])) > 0
    line = run("sql", query, "--store", filled.uri).output.splitlines()[1]
    assert line.split("\t")[0] == json.dumps(row["depth"])


def test_compact_joins_files(filled, run) -> None:
    done = run("compact", "--store", filled.uri)
    assert done.exit_code == 0
    assert "5 files became 2" in done.output
    assert len(filled.dataset("pairs")) == 100
