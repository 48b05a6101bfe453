from __future__ import annotations

import csv
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.benchmarks import BENCHMARKS, Part, table_benchmark
from clients.benchmarks.table_files import Rows, open_rows
from clients.benchmarks.table_values import NameSearch
from clients.commands.parts import chosen_reader
from syntax.errors import InputError, SpecError
from syntax.examples import TOKEN_MODES, Example, LabelSpec, SpanLabel

TABLE = BENCHMARKS["table"]
LABEL = LabelSpec("label", "class")

CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))


def fates(items):
    return {item.example_id: getattr(item, "reason", None) for item in items}


def rows_in(path):
    return [make_row() for make_row in open_rows(path).rows]


@pytest.fixture
def folder(benchmark_files):
    return benchmark_files / "table"


@pytest.fixture
def one_row(tmp_path):
    """The only item of a table with one row."""

    def read(row, mode=None, **options):
        path = tmp_path / "dev.jsonl"
        path.write_text(json.dumps(row), "utf-8")
        (item,) = table_benchmark(**options).read(path, "dev", "en", mode)
        return item

    return read


@pytest.fixture(scope="module")
def shared_file(tmp_path_factory):
    return tmp_path_factory.mktemp("tables") / "dev.csv"


def test_columns_become_fields_labels_and_id(folder):
    nli = table_benchmark(
        fields=("premise", "hypothesis"),
        labels=(LabelSpec("label", "class"), LabelSpec("score", "float")),
        columns={"premise": "sentence1", "hypothesis": "sentence2", "label": "gold"},
        id="key",
    )
    first, second, third = nli.read(folder, "dev", "en")
    assert (first.example_id, first.labels) == ("k1", {"label": "yes", "score": 0.9})
    assert [segment.text for segment in second.segments] == ["Il neige.", "Il pleut."]
    assert (third.example_id, third.reason) == ("k3", "example")
    assert (
        "k3 has nothing in the column 'sentence2'; its columns are key, sentence1" in third.message
    )
    labels = nli.spec("dev", "en", path=folder / "dev.jsonl").labels
    assert labels == (LabelSpec("label", "class", ("no", "yes")), LabelSpec("score", "float"))


def test_csv_has_quoting_and_tsv_has_none(folder):
    data = table_benchmark(labels=(LABEL,), id="key")
    from_csv = list(data.read(folder / "test-de.csv", "test", "de"))
    assert from_csv[0].segments[0].text == 'Er sagte "nein", und\nging.'
    assert fates(from_csv) == {"a": None, "b": None, "test-3": "example"}
    assert "test-de.csv, line 5 ends a record of 4 fields; expected 3" in from_csv[2].message
    from_tsv = list(data.read(folder, "train", "de"))
    assert [x.segments[0].text for x in from_tsv[:2]] == ['Er sagte "nein".', '"Gut."']
    assert from_tsv[2].message.startswith("train-de.tsv, line 4 has 2 fields; expected 3")


def test_names_are_those_that_occur_in_any_file(folder):
    labels = table_benchmark(labels=(LABEL,)).labels_of(folder / "train-de.tsv")
    assert labels[0].names == ("0", "10")


@pytest.mark.parametrize(
    ("label", "column", "said"),
    [
        (LABEL, "golld", "no column 'golld' for the label 'label'; the columns are gold, key, "),
        (LabelSpec("label", "tags"), "score", "no row has in the column 'score' a .* kind 'tags'"),
    ],
)
def test_a_label_without_any_name_is_refused(folder, label, column, said):
    table = table_benchmark(labels=(label,), columns={"label": column})
    with pytest.raises(SpecError, match=said):
        table.spec("dev", "en", path=folder / "dev.jsonl")


def test_a_table_without_any_name_leaves_the_order_of_the_others():
    search = NameSearch({LABEL: "gold"})
    search.add(lambda: Rows(iter([dict]), {"gold": ("sad", "glad")}))
    search.add(lambda: Rows(iter([dict])))
    assert search.names() == {"label": ("sad", "glad")}


def test_parts_are_named_by_file_names(tmp_path):
    names = "train-00001-of-00002.parquet train-00000-of-00002.parquet fr/dev-0-of-1.parquet"
    for name in [*names.split(), "test-de.csv", "dev.jsonl", "data-0-of-1.arrow", "notes.txt"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = {
        (part.split, part.lang): [x.name for x in part.files] for part in TABLE.parts(tmp_path)
    }
    assert found == {
        ("*", "*"): ["data-0-of-1.arrow"],
        ("dev", "*"): ["dev.jsonl"],
        ("dev", "fr"): ["dev-0-of-1.parquet"],
        ("test", "de"): ["test-de.csv"],
        ("train", "*"): ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"],
    }


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=4))
def test_csv_round_trip_restores_the_rows(shared_file, records):
    with shared_file.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["a", "b"], *records])
    assert [list(row.values()) for row in rows_in(shared_file)] == records


def test_bad_table_lines_do_not_affect_others(tmp_path):
    for name, content in {
        "dev.jsonl": b'{"text": "a"}\n\n{"text": \n["text"]\n{"text": "caf\xe9"}\n{"text": "b"}\n',
        "dev.csv": b'text\n"a"\n"un"closed\n"caf\xe9"\n"b"\n',
        "dev.tsv": b"text\na\nun\tclosed\ncaf\xe9\nb\n",
        "dev.json": b'[{"text": "a"}, 7, {"text": "caf\xe9"}, {"text": "b"}]',
    }.items():
        (tmp_path / name).write_bytes(content)
        items = list(TABLE.read(tmp_path / name, "dev", "en"))
        bad = [item.reason for item in items if not isinstance(item, Example)]
        assert items[0].segments[0].text == "a"
        assert items[-1].segments[0].text == "b"
        assert {"example", "invalid_character"} == set(bad), name


def test_a_line_that_is_nested_too_deeply_is_rejected_alone(tmp_path):
    content = "[" * 100_000 + '\n{"text": "a"}\n'
    (tmp_path / "dev.jsonl").write_text(content, "utf-8")
    bad, good = TABLE.read(tmp_path / "dev.jsonl", "dev", "en")
    assert (bad.reason, good.segments[0].text) == ("example", "a")


def test_unclosed_quotation_mark_rejects_the_lines_it_spans(tmp_path):
    (tmp_path / "dev.csv").write_text('text\na\n"b\nc\nd\n', "utf-8")
    first, last = TABLE.read(tmp_path / "dev.csv", "dev", "en")
    assert isinstance(first, Example)
    assert last.message == (
        "dev.csv, lines 3 to 5 are no CSV: unexpected end of data; none of them was read: close "
        "the quotation mark"
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("dev.csv", '\ntext,n\n\na,1\r\n\r\n"b\n\nc",2\n\n'),
        ("dev.tsv", '\ntext\tn\n\na\t1\r\n\r\n"b  c"\t2\n\n'),
        ("dev.jsonl", '\n{"text": "a"}\r\n\r\n{"text": "b  c"}\n\n'),
    ],
)
def test_blank_lines_are_no_rows(tmp_path, name, content):
    (tmp_path / name).write_bytes(content.encode())
    items = list(TABLE.read(tmp_path / name, "dev", "en"))
    assert [item.example_id for item in items] == ["dev-1", "dev-2"]
    assert [item.segments[0].text.strip('"').split() for item in items] == [["a"], ["b", "c"]]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("dev.csv", "text,text,label\na,b,c\n", "dev.csv has several columns 'text': text, text"),
        ("dev.tsv", "text\ttext\na\tb\n", "dev.tsv has several columns 'text': text, text"),
        ("dev.csv", '"te"xt\na\n', "the header of dev.csv is no CSV"),
        ("dev.csv", "\xff\xfe", "is UTF-16"),
        ("dev.jsonl", "\xff\xfe", "is UTF-16"),
        ("dev.json", '[{"text": ', "dev.json is no whole JSON document"),
    ],
)
def test_file_without_readable_rows_is_refused(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content.encode("latin-1"))
    (item,) = TABLE.read(path, "dev", "en")
    assert said in item.message
    with pytest.raises(InputError, match=re.escape(said)):
        table_benchmark(labels=(LABEL,)).spec("dev", "en", path=path)


def test_columns_without_a_name_may_be_several(tmp_path):
    (tmp_path / "dev.csv").write_text("text,,\na,,\n", "utf-8")
    assert fates(TABLE.read(tmp_path / "dev.csv", "dev", "en")) == {"dev-1": None}


def test_rows_are_numbered_through_all_files_of_a_part(tmp_path):
    files = tuple(tmp_path / name for name in ("a.jsonl", "b.csv"))
    files[0].write_text('{"text": "1"}\n{"text": "2"}\n', "utf-8")
    files[1].write_text("text\n3\n", "utf-8")
    items = TABLE.read_part(Part("train", "en", files), "raw")
    assert {x.example_id: x.segments[0].text for x in items} == {
        "train-1": "1",
        "train-2": "2",
        "train-3": "3",
    }


def test_two_tables_of_one_part_are_refused(tmp_path):
    for name in ("dev.csv", "dev.jsonl"):
        (tmp_path / name).touch()
    with pytest.raises(SpecError, match="several files hold dev in 'en'"):
        TABLE.read(tmp_path, "dev", "en")


@pytest.mark.parametrize(
    ("mode", "value", "expected"),
    [
        ("raw", "a  b", "a  b"),
        ("raw", ["a", "b"], "a b"),
        ("pretokenized", "a  b", ("a", "b")),
        ("retokenize", ["a b", "c"], ("a b", "c")),
    ],
)
def test_texts_and_tokens_are_turned_into_what_the_mode_takes(one_row, mode, value, expected):
    segment = one_row({"text": value}, mode).segments[0]
    assert (segment.text or segment.tokens) == expected


SQUAD = {"text": ["b", "", "a"], "answer_start": [2, 0, 0]}


@pytest.mark.parametrize(
    ("spec", "value", "expected"),
    [
        (LabelSpec("x", "class", ("no", "yes")), 1, "yes"),
        (LabelSpec("x", "class", ("1", "0")), 1, "1"),
        (LabelSpec("x", "class"), True, "True"),
        (LabelSpec("x", "float"), "1.5", 1.5),
        (LabelSpec("x", "string"), 3, "3"),
        (LabelSpec("x", "tags", ("O", "B-X")), [0, 1], ("O", "B-X")),
        (LabelSpec("x", "tags"), "O B-X", ("O", "B-X")),
        (LabelSpec("x", "spans"), [[0, 1], [2, 3, "n"]], (SpanLabel(0, 1), SpanLabel(2, 3, "n"))),
        (LabelSpec("x", "spans"), [{"start_char": 0, "end_char": 1}], (SpanLabel(0, 1),)),
        (
            LabelSpec("x", "spans"),
            '[{"start": 0, "end": 1, "label": "n"}]',
            (SpanLabel(0, 1, "n"),),
        ),
        (LabelSpec("x", "spans"), SQUAD, (SpanLabel(2, 3), SpanLabel(0, 1))),
    ],
)
def test_labels_take_the_forms_of_tables(one_row, spec, value, expected):
    assert one_row({"text": "a b", "x": value}, labels=(spec,)).labels == {"x": expected}


@pytest.mark.parametrize(
    ("spec", "value", "said"),
    [
        (LabelSpec("x", "class", ("no", "yes")), 2, "is 2; expected one of no, yes"),
        (LabelSpec("x", "class", ("no", "yes")), "maybe", "is 'maybe'; expected one of no, yes"),
        (LabelSpec("x", "class"), ["a"], "expected one class"),
        (LabelSpec("x", "float"), "high", "is 'high'; expected a number that is finite"),
        (LabelSpec("x", "string"), {}, "expected a text"),
        (LabelSpec("x", "tags"), 3, "expected a list of tags"),
        (LabelSpec("x", "tags", ("O",)), ["O", "B"], "tag 1 is 'B'; expected one of O"),
        (LabelSpec("x", "spans"), [[0]], "expected a list of [start, end, name]"),
        (LabelSpec("x", "spans"), [["0", 1]], "expected a list of [start, end, name]"),
        (LabelSpec("x", "spans"), "no JSON", "expected a list of [start, end, name]"),
        (LabelSpec("x", "spans"), "[" * 9999, "expected a list of [start, end, name]"),
        (
            LabelSpec("x", "spans"),
            SQUAD | {"text": [1, 2, 3]},
            "expected a list of [start, end, name]",
        ),
        (LabelSpec("x", "spans"), {"text": ["a"]}, "expected a list of [start, end, name]"),
        (LabelSpec("x", "spans", ("n",)), [[0, 1, "m"]], "names 'm'; expected one of n"),
    ],
)
def test_malformed_labels_are_rejected(one_row, spec, value, said):
    item = one_row({"text": "a b", "x": value}, labels=(spec,))
    assert item.reason == "label"
    assert said in item.message


@pytest.mark.parametrize("mode", ["raw", "pretokenized"])
def test_displaced_answers_of_tables_are_moved_or_rejected(one_row, mode):
    answers = LabelSpec("x", "spans", field="b")
    options = {"fields": ("a", "b"), "labels": (answers,)}
    row = {"a": "Which?", "b": ["A", "black", "cat."]}
    moved = {"text": ["cat", "black", ""], "answer_start": [3, 2, 0]}
    for value in (moved, json.dumps(moved)):
        item = one_row(row | {"x": value}, mode, **options)
        assert item.labels == {"x": (SpanLabel(8, 11), SpanLabel(2, 7))}
        assert item.repairs == ("answer_moved",)
    gone = one_row(row | {"x": {"text": ["dog"], "answer_start": [2]}}, mode, **options)
    assert gone.reason == "label"
    assert "the answer 'dog' is not at character 2, where the passage has 'bla'" in gone.message


def test_spans_of_a_text_with_other_spaces_are_not_moved_onto_tokens(one_row):
    spans = LabelSpec("x", "spans")
    for text, reason in (("a b", None), ("a  b", "label")):
        item = one_row({"text": text, "x": [[2, 3]]}, "pretokenized", labels=(spans,))
        assert getattr(item, "reason", None) == reason
    assert one_row({"text": "a  b", "x": [[3, 4]]}, labels=(spans,)).labels == {
        "x": (SpanLabel(3, 4),)
    }


def test_tags_need_tokens():
    assert table_benchmark(labels=(LabelSpec("x", "tags"),)).modes == TOKEN_MODES


@pytest.mark.parametrize(
    "options",
    [
        {"fields": ()},
        {"fields": ("a", "a")},
        {"fields": ("label",), "labels": (LABEL,)},
        {"columns": {"txt": "sentence"}},
        {"labels": (LabelSpec("x", "spans", field="passage"),)},
    ],
)
def test_contradictory_columns_are_refused(options):
    with pytest.raises(SpecError):
        table_benchmark(**options)


def test_a_file_of_another_kind_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(InputError, match=r"dev\.xls is no table .* \.csv, .*\.parquet"):
        open_rows(tmp_path / "dev.xls")


def test_a_path_can_be_given_beforehand(folder):
    data = table_benchmark(folder / "dev.jsonl", labels=(LABEL,), columns={"label": "gold"})
    assert [x.labels["label"] for x in data.read(None, "dev", "en")] == ["yes", "no", "no"]
    assert data.labels_of()[0].names == ("no", "yes")


def test_the_command_line_names_columns_labels_and_their_field():
    labels = ["answers:spans:passage=gold", "level", "score:float"]
    data = chosen_reader("table", ["question=q", "passage"], labels, "id")
    assert data.fields == ("question", "passage")
    assert data.labels == (
        LabelSpec("answers", "spans", field="passage"),
        LabelSpec("level", "class"),
        LabelSpec("score", "float"),
    )
