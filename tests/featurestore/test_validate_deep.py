"""What is damaged below the rows that look sound: keys, descriptions, files, vectors, parsers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from featurestore import ParseRecord, open_store
from featurestore.maintenance import rules
from featurestore.maintenance.inspect import all_tables
from featurestore.maintenance.repair import repair_store
from featurestore.maintenance.validate import validate_store
from featurestore.reports.stats import parse_stats
from featurestore.tables.data_files import write_files
from featurestore.tables.encode.parses import encode_parses
from featurestore.tables.files import FileReader
from syntax.errors import StoreError
from syntax.fingerprint import parse_key
from syntax.trees.conllu import parse_from_sentences

PARSER = "d" * 32


@pytest.fixture(scope="module")
def raw(parses):
    """Parses whose keys are those of their texts."""
    return [
        ParseRecord(parse_key(PARSER, "en", "raw", parse.text), "en", PARSER, "raw", parse)
        for parse in parses[:20]
    ]


@pytest.fixture
def keyed(store, handle, raw, make_row):
    """These parses, and ten pairs of them."""
    store.parses.append(raw)
    store.describe(PARSER, "parser", {"name": "gold"})
    store.describe(handle.tokenizer_fingerprint, "tokenizer", {"name": "toy"})
    store.features.append(
        handle, [make_row(n, (raw[n], raw[n + 10]), parser=PARSER) for n in range(10)]
    )
    return store


def test_one_damaged_record_does_not_hide_the_others(keyed, raw) -> None:
    data = encode_parses([raw[3]])
    column = pa.array([b"\x01"], pa.binary())
    keyed.parses.table.delete("key", [raw[3].key])
    keyed.parses.table.append(data.set_column(data.num_columns - 1, "record", column))
    with open_store(keyed.uri) as again:
        report = validate_store(again, deep=True)
    assert [problem.row for problem in report.problems] == [raw[3].key, "ex-3"]
    assert all("is damaged" in problem.message for problem in report.problems)


def test_sound_store_passes_deep_validation(keyed) -> None:
    seen = []
    report = validate_store(keyed, deep=True, watch=seen.append)
    assert report.problems == []
    assert sum(seen) == report.parses + report.examples == 30


@pytest.mark.slow_cases
@pytest.mark.parametrize("mode", ["raw", "sentence", "pretokenized", "tokens_mwt"])
@pytest.mark.parametrize("long", ["refuse", "split"])
def test_key_of_another_text_is_found(store, parses, mode, long) -> None:
    parse = parse_from_sentences(parses[0].sentences(), layout="spaces")
    spans = zip(parse.token_start, parse.token_end, strict=True)
    tokens = [parse.text[start:end] for start, end in spans]
    given = {"tokens": tokens} if "token" in mode else {"text": parse.text}
    key = parse_key(PARSER, "en", mode, **given, long_sentences=long)
    store.describe(PARSER, "parser", {"name": "gold"})
    store.parses.append([ParseRecord(key, "en", PARSER, mode, parse)])
    assert validate_store(store, deep=True).problems == []
    store.parses.append([ParseRecord("e" * 32, "en", PARSER, mode, parse)])
    (problem,) = validate_store(store, deep=True).problems
    assert (problem.row, "text or key has been changed" in problem.message) == ("e" * 32, True)


def test_limits_of_words_are_looked_for_a_few_times_only(store, parses, monkeypatch) -> None:
    tried = []

    def counted(*made_of, **options):
        tried.append(made_of)
        return parse_key(*made_of, **options)

    monkeypatch.setattr(rules, "parse_key", counted)
    monkeypatch.setattr(rules, "MOST_WORDS", 2000)
    store.describe(PARSER, "parser", {"name": "gold"})
    parse = parses[0]
    keys = [parse_key(PARSER, "en", "raw", parse.text, None, "split", n) for n in (300, 1337)]
    keys += [f"{n:032x}" for n in range(30)]
    store.parses.append([ParseRecord(key, "en", PARSER, "raw", parse) for key in keys])
    problems = validate_store(store, deep=True).problems
    assert [problem.row for problem in problems] == keys[2:]
    assert "split at any limit of words up to 2,000 either" in problems[0].message
    assert "any usual limit of words (all were tried for 3 keys, in vain)" in problems[-1].message
    assert len(tried) < 5 * 2000 + 2 * 32 * 150


def test_vectors_of_another_parse_are_found(keyed, raw, handle, make_row) -> None:
    row = make_row(10, (raw[3],) * 2, parser=PARSER)
    upos = row.segments[1].upos.copy()
    upos[-1] += 1
    segments = (row.segments[0], replace(row.segments[1], upos=upos))
    keyed.features.append(handle, [replace(row, segments=segments)])
    (problem,) = validate_store(keyed, deep=True).problems
    assert problem.row == "ex-10"
    assert problem.message == "the stored upos of segment 1 is not its parse's"


def test_missing_parses_and_fingerprints_are_found(keyed, handle, make_row, records) -> None:
    keyed.features.append(handle, [make_row(11, (records[0], records[1]))])
    problems = validate_store(keyed, deep=True).problems
    assert [problem.row for problem in problems] == ["ex-11", records[0].parser]
    assert "is not in the store" in problems[0].message
    assert "nobody described" in problems[1].message


@pytest.mark.parametrize("content", ["{not json", "[1]", None])
@pytest.mark.parametrize("deep", [False, True])
def test_a_damaged_description_is_found_and_named(keyed, content, deep) -> None:
    rewrite(keyed, "fingerprints", lambda rows: with_first(rows, "content", content))
    with open_store(keyed.uri) as again:
        problems = validate_store(again, deep=deep).problems
        with pytest.raises(StoreError, match="is damaged") as caught:
            parse_stats(again)
    assert problems[0].table == "fingerprints"
    assert all("the description of" in problem.message for problem in problems)
    assert problems[0].message == caught.value.message


@pytest.mark.parametrize("key", ["nothex", "x" * 32, None])
@pytest.mark.parametrize(("table", "column"), [("parses", "key"), ("datasets", "example_key")])
def test_invalid_keys_are_listed(keyed, table, column, key) -> None:
    rewrite(keyed, table, lambda rows: with_first(rows, column, key))
    with open_store(keyed.uri) as again:
        report = validate_store(again)
    assert (report.parses, report.examples) == (20, 10)
    (problem,) = report.problems  # the other keys of the file count as missing
    assert problem.message == (
        f"{str(key)!r} is not a key; keys have 32 lower-case hexadecimal digits"
    )


@pytest.mark.parametrize("change", [("numRecords", "20", "21"), ("size", "", "1")])
def test_what_a_log_says_of_a_file_is_compared_with_it(keyed, change) -> None:
    name, old, new = change
    (entry,) = Path(keyed.uri, "parses", "_delta_log").glob("*1.json")
    found = re.sub(rf'({name}\\?":\s*){old}', rf"\g<1>{new}", entry.read_text())
    assert found != entry.read_text()
    entry.write_text(found)
    with open_store(keyed.uri) as again:
        (problem,) = validate_store(again).problems
        assert "; the log says " in problem.message
        assert repair_store(again, dry_run=False).files[0].kept == 20
    with open_store(keyed.uri) as again:
        assert validate_store(again, deep=True).problems == []


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("example_id", None, "example_id is None; an example has a name that is not empty"),
        ("example_id", "", "example_id is ''; an example has a name that is not empty"),
        ("seq", None, "seq is None; places in the order of a split are 0 or more"),
        ("seq", -4, "seq is -4; places in the order of a split are 0 or more"),
    ],
)
def test_examples_without_a_name_or_a_place_are_found(keyed, column, value, message) -> None:
    rewrite(keyed, "datasets", lambda rows: with_first(rows, column, value))
    (problem,) = validate_store(keyed).problems
    assert problem.message == message


def test_examples_of_another_parser_than_their_parses_are_found(keyed) -> None:
    other = "f" * 32
    keyed.describe(other, "parser", {"name": "another"})
    rewrite(keyed, "datasets", lambda rows: with_first(rows, "parser", other))
    (problem,) = validate_store(keyed, deep=True).problems
    assert problem.row == "ex-0"
    assert problem.message == (f"segment 0 was parsed by {PARSER}; the example's parser is {other}")


def test_segments_by_several_parsers_are_sound_in_the_described_order(
    keyed, raw, handle, make_row, make_record, records
) -> None:
    theirs = make_record(records[0].parse)
    keyed.parses.append([theirs])
    keyed.describe(theirs.parser, "parser", {"name": "another"})
    keyed.describe("f" * 32, "parser", {"name": "two", "parsers": [PARSER, theirs.parser]})
    keyed.features.append(handle, [make_row(10, (raw[0], theirs), parser="f" * 32)])
    assert validate_store(keyed, deep=True).problems == []
    keyed.features.append(handle, [make_row(11, (theirs, raw[0]), parser="f" * 32)])
    (problem,) = validate_store(keyed, deep=True).problems
    assert problem.row == "ex-11"
    assert problem.message.startswith(f"segment 0 was parsed by {theirs.parser}")


def rewrite(store, table: str, change) -> None:
    """Put changed rows in the place of those of one file, as a writer with a fault would."""
    (name, found) = next((x, t) for x, t in all_tables(store) if x.startswith(table))
    file = found.snapshot().files[0]
    rows = change(FileReader(found.location).columns(file.path, found.layout.stored_schema.names))
    added = write_files(found.location, found.layout, file.partition, [rows], 100)
    assert found.swap([file], added), name


def with_first(rows: pa.Table, column: str, value) -> pa.Table:
    """The rows with another value in the first."""
    values = [value, *rows[column].to_pylist()[1:]]
    place = rows.schema.get_field_index(column)
    field = rows.schema.field(place)
    return rows.set_column(place, field, pa.array(values, field.type))
