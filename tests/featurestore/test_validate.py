from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from featurestore import open_store
from featurestore.maintenance.inspect import inspect_store
from featurestore.maintenance.validate import validate_store
from featurestore.tables.encode.examples import encode_examples
from featurestore.tables.encode.packed import pack_record
from featurestore.tables.encode.parses import encode_parses
from featurestore.tables.states import STATES, states_tables
from syntax.errors import SpecError


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


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("distance", [b"\x07"] * 2, "the stored distance differs from the one derived from head"),
        ("depth", [b"\x07"] * 2, "the stored depth differs from the one derived from head"),
        ("ancestor", [b"\x07"] * 2, "the stored ancestor differs from the one derived from head"),
        ("upos", b"\x01", "upos holds 1 numbers"),
        ("head", 1, "cycle"),
        ("label", "maybe", "label label is 'maybe'; expected one of entailment"),
        ("input_ids", -1, "input_ids holds -1; ids of the tokenizer are 0 to 4999"),
        ("input_ids", 5000, "input_ids holds 5000; ids of the tokenizer are 0 to 4999"),
    ],
)
def test_values_that_cannot_be_are_found(whole, handle, rows, column, value, message) -> None:
    if isinstance(value, int):
        value = np.full(sum(map(len, rows[0].segments)), value, np.int32).tobytes()
    damage(whole, handle, rows, column, value)
    (problem,) = validate_store(whole, deep=column in ("label", "input_ids")).problems
    assert problem.row == "ex-0"
    assert message in problem.message
    assert problem.table.startswith("datasets/pairs/toy-")


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
    assert run("validate", "--deep").exit_code == 1
    assert run("stats").exit_code == 0  # of what can be read


def test_a_pin_of_a_version_that_is_gone_is_a_problem(filled) -> None:
    data = filled.dataset("pairs")
    data.pin("paper")
    filled.compact()
    assert validate_store(filled).problems == []
    Path(data.reader.location.uri, data.rows.paths[0]).unlink()
    (problem,) = validate_store(filled).problems
    assert (problem.table, problem.row) == ("pins", "paper")
    assert problem.message.startswith("1 of the 4 files of version 4 of pairs/toy-")


def test_states_without_a_key_are_found(every_table) -> None:
    ((name, table),) = states_tables(every_table.root)
    table.append(pa.table([["x"], [[1]], [b"\0\0"]], schema=STATES.schema))
    (problem,) = validate_store(every_table).problems
    assert (problem.table, problem.row) == (name, "x")


def test_rows_and_places_that_repeat_are_counted(filled, handle, rows, records, run) -> None:
    filled.parses.append(records)
    filled.parses.append(records[:2])
    filled.features.append(handle, rows[:1])
    other = replace(rows[5], example_id="another", example_key="e" * 32)
    filled.features.append(handle, [other])
    report = validate_store(filled)
    assert (report.repeated, report.same_place, report.problem_count) == (3, 1, 0)
    assert "3 rows are there more than once" in run("validate").output


def test_the_command_says_what_it_checked_and_fails_on_problems(filled, handle, rows, run) -> None:
    done = run("validate")
    assert done.exit_code == 0
    assert "100 examples, 200 segments with matrices checked: 0 problems" in done.output
    damage(filled, handle, rows, "depth", [b"", b""])
    done = run("validate")
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
    printed = json.loads(run("inspect", "--json").output)
    assert printed == [table.to_json() for table in inspect_store(filled)]
    assert "parses" in run("inspect").output


def test_datasets_are_listed(filled, run) -> None:
    (printed,) = json.loads(run("datasets", "--json").output)
    assert printed["parts"] == [{"split": "train", "lang": "en", "rows": 100}]
    assert "pairs" in run("datasets").output


def test_sql_prints_rows(filled, run) -> None:
    query = "select split, count(*) as n from examples group by all"
    done = run("sql", query, "--json")
    assert json.loads(done.output) == [{"split": "train", "n": 100}]
    assert "train" in run("sql", query).output


def test_sql_errors_are_those_of_the_query(filled, run) -> None:
    done = run("sql", "select nothing from examples")
    assert done.exit_code == 1
    assert isinstance(done.exception, SpecError)
    assert '"nothing" not found' in str(done.exception)
    for query in ("", " -- all of it"):
        assert "a query is one SELECT" in str(run("sql", query).exception)


@pytest.mark.parametrize("text", ["[/foo]", "see [NP the cat]", ":smile: [bold]"])
def test_sql_prints_texts_in_brackets_as_they_are(filled, run, text) -> None:
    done = run("sql", f"select '{text}' as \"[b]\"")
    assert done.exit_code == 0
    assert text in done.output
    assert "[b]" in done.output


def test_sql_gives_every_column_and_no_value_that_json_lacks(filled, run) -> None:
    numbers = "1 as n, 2 as n, 'nan'::float as x, ['inf'::float, 1] as y"
    done = run("sql", f"select {numbers}, now() as t, [now()] as u, {{'at': now()}} as v", "--json")
    (row,) = json.loads(done.output)
    assert [row.pop(name) for name in ("n", "n_1", "x", "y")] == [1, 2, None, [None, 1.0]]
    assert row == {"t": row["t"], "u": [row["t"]], "v": {"at": row["t"]}}
    assert datetime.fromisoformat(row["t"]).tzinfo is not None


def test_sql_prints_matrices_as_lists_and_bytes_as_base64(filled, run) -> None:
    query = "select segments.depth, segments.ancestor, head from segments limit 1"
    query = f"select s.*, e.upos from ({query}) s, (from examples limit 1) e"
    done = run("sql", query, "--json")
    (row,) = json.loads(done.output)
    assert len(row["ancestor"]) == len(row["depth"]) == len(row["head"])
    assert "\\x" not in done.output
    assert len(b64decode(row["upos"])) > 0
    line = run("sql", query).output.splitlines()[1]
    assert line.split("\t")[0] == json.dumps(row["depth"])


def test_compact_joins_files(filled, run) -> None:
    assert "5 files became 2" in run("compact").output
    assert len(filled.dataset("pairs")) == 100
