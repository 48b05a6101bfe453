"""Utterances with intents and slots: ATIS, SNIPS, MultiATIS++ and mTOP."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.benchmarks import ATIS, BENCHMARKS, MATIS, MTOP, SNIPS
from clients.benchmarks.mtop import Token, span_tags
from clients.benchmarks.slots import divided
from syntax.errors import LabelError, SpecError
from syntax.examples import Example, Rejection, SpanLabel


def slots(item: object) -> list[tuple[str, str]]:
    assert isinstance(item, Example)
    return list(zip(item.segments[0].tokens, item.labels["slots"], strict=True))


def reasons(items: list) -> list[str]:
    return [item.reason if isinstance(item, Rejection) else "" for item in items]


def names(reader, path) -> dict[str, tuple[str, ...]]:
    return {label.name: label.names for label in reader.labels_of(path)}


def test_three_files_make_one_example(benchmark_files):
    items = list(ATIS.read(benchmark_files / "atis", "train", "en"))
    assert [item.example_id for item in items] == ["train-1", "train-2"]
    assert items[0].labels["intent"] == "flight"
    assert slots(items[0])[2:] == [
        ("oakville", "B-fromloc.city_name"),
        ("to", "O"),
        ("pine", "B-toloc.city_name"),
        ("city", "I-toloc.city_name"),
    ]


def test_valid_is_dev_and_bad_lines_are_rejected_by_name(benchmark_files):
    items = list(ATIS.read(benchmark_files / "atis", "valid", "en"))
    assert [item.example_id for item in items] == ["dev-1", "dev-2", "dev-3"]
    assert reasons(items) == ["", "label", "no_label"]
    assert items[1].message.startswith("valid, line 2: 2 tokens and 1 tags")


def test_names_are_those_of_all_splits_in_a_stated_order(benchmark_files):
    expected = {
        "intent": ("flight", "flight#time", "meal"),
        "slots": (
            *("O", "B-fromloc.city_name", "I-fromloc.city_name", "B-meal", "I-meal"),
            *("B-time", "I-time", "B-toloc.city_name", "I-toloc.city_name"),
        ),
    }
    assert names(ATIS, benchmark_files / "atis") == expected
    for split in ("train", "dev"):
        spec = ATIS.spec(split, "en", path=benchmark_files / "atis")
        assert {label.name: label.names for label in spec.labels} == expected


def test_names_follow_a_file_that_changes(tmp_path):
    (tmp_path / "train").mkdir()
    for file, text in (("seq.in", "go"), ("seq.out", "O"), ("label", "one")):
        (tmp_path / "train" / file).write_text(f"{text}\n", "utf-8")
    assert names(ATIS, tmp_path)["intent"] == ("one",)
    (tmp_path / "train" / "label").write_text("other\n", "utf-8")
    assert names(ATIS, tmp_path)["intent"] == ("other",)


def test_a_spec_needs_the_files_where_only_they_know_the_names():
    with pytest.raises(SpecError, match="atis needs a path to its files: a folder of folders"):
        ATIS.spec("train", "en")


def test_a_missing_line_is_rejected_by_name(tmp_path):
    (tmp_path / "train").mkdir()
    for file, text in (("seq.in", "go\nstop\n"), ("seq.out", "O\nO\n"), ("label", "one\n")):
        (tmp_path / "train" / file).write_text(text, "utf-8")
    first, last = ATIS.read(tmp_path, "train", "en")
    assert isinstance(first, Example)
    assert last.message.startswith("train/label has no line 2, the files beside it have")


def test_one_of_the_three_files_is_no_benchmark(benchmark_files):
    with pytest.raises(SpecError, match="give the folder of the splits"):
        list(ATIS.read(benchmark_files / "atis/train/seq.in", "train", "en"))


def test_languages_may_be_folders_above_the_splits(tmp_path):
    for lang in ("de", "fr"):
        folder = tmp_path / lang / "test"
        folder.mkdir(parents=True)
        for file in ("seq.in", "seq.out", "label"):
            (folder / file).touch()
    assert [(part.split, part.lang) for part in ATIS.parts(tmp_path)] == [
        ("test", "de"),
        ("test", "fr"),
    ]


def test_only_spaces_and_tabs_divide_tokens():
    assert divided(" a  b\u00a0c\td\u3000e ") == ["a", "b\u00a0c", "d\u3000e"]
    assert divided("") == []


def test_lines_of_matis_share_their_id_across_languages(benchmark_files):
    english = list(MATIS.read(benchmark_files / "matis", "dev", "en"))
    german = list(MATIS.read(benchmark_files / "matis", "dev", "de"))
    assert [item.example_id for item in english] == ["dev-7", "dev-9"]
    assert [item.example_id for item in german] == ["dev-7", "dev-9", "dev-11"]
    assert reasons(german) == ["label", "", "example"]
    assert slots(english[0])[1] == ('"cheap"', "O")


def test_names_of_matis_are_those_of_all_languages(benchmark_files):
    folder = benchmark_files / "matis"
    assert names(MATIS, folder) == {
        "intent": ("fare", "flight", "meal"),
        "slots": ("O", "B-city", "I-city", "B-meal", "I-meal"),
    }
    assert BENCHMARKS["multiatis"] is MATIS


def test_slots_of_mtop_become_tags_of_its_tokens(benchmark_files):
    alarm, message, weather = MTOP.read(benchmark_files / "mtop", "dev", "en")
    assert alarm.example_id == "dev-1"
    assert alarm.labels["intent"] == "SET_ALARM"
    assert slots(alarm)[1:4] == [("me", "O"), ("at", "B-DATE_TIME"), ("six", "I-DATE_TIME")]
    assert message.labels["slots"] == ("O", "B-RECIPIENT", "B-CONTENT", "I-CONTENT")
    assert weather.labels["slots"] == ("O", "O", "O")


def test_mtop_rejects_by_name_and_keeps_the_ids_of_the_file(benchmark_files):
    items = list(MTOP.read(benchmark_files / "mtop", "dev", "de"))
    assert [item.example_id for item in items] == [f"dev-{n}" for n in (1, 2, 4, 5, 6, 8)]
    assert reasons(items) == ["", "label", "label", "example", "example", "label"]
    assert "slot 6:14 CONTENT covers a token of another slot" in items[1].message
    assert "slot 99:120 LOCATION covers no token" in items[2].message


def test_names_of_mtop_are_those_of_all_languages_and_splits(benchmark_files):
    assert names(MTOP, benchmark_files / "mtop") == {
        "intent": ("GET_WEATHER", "PLAY_MUSIC", "SEND_MESSAGE", "SET_ALARM"),
        "slots": (
            *("O", "B-CONTENT", "I-CONTENT", "B-DATE_TIME", "I-DATE_TIME"),
            *("B-RECIPIENT", "I-RECIPIENT", "B-TITLE", "I-TITLE"),
        ),
    }


@pytest.mark.parametrize(
    "tokens", ["", "[" * 100_000, "{}", '{"tokens": ["a"], "tokenSpans": []}', "[1]", "null"]
)
def test_any_other_last_column_is_a_rejection(tmp_path, tokens):
    fields = ["1", "IN:A", "", "a", "d", "en_XX", "", tokens]
    (tmp_path / "train.txt").write_text("\t".join(fields) + "\n", "utf-8")
    (item,) = MTOP.read(tmp_path / "train.txt", "train", "en")
    assert item.reason == "example"


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.lists(st.integers(0, 29), max_size=6))
def test_tags_of_spans_are_those_of_their_characters(gaps: list[bool], cuts: list[int]) -> None:
    ends = [at + 1 for at, gap in enumerate(gaps) if gap] + [len(gaps)]
    tokens = [Token("x", a, b) for a, b in zip([0, *ends], sorted(set(ends)), strict=False)]
    bounds = sorted({cut for cut in cuts if cut < len(gaps)})
    spans = [SpanLabel(a, b, "S") for a, b in zip(bounds[::2], bounds[1::2], strict=False)]
    owner = {at: n for n, span in enumerate(spans) for at in range(span.start_char, span.end_char)}
    owners = [{owner[at] for at in range(t.start, t.end) if at in owner} for t in tokens]
    if any(len(own) > 1 for own in owners):
        with pytest.raises(LabelError, match="covers a token of another slot"):
            span_tags(tokens, spans, "here")
        return
    tags = span_tags(tokens, spans, "here")
    seen: set[int] = set()
    for own, tag in zip(owners, tags, strict=True):
        expected = "O" if not own else "I-S" if own <= seen else "B-S"
        assert tag == expected
        seen |= own


@pytest.mark.parametrize(
    ("reader", "counts", "intents", "types"),
    [
        (ATIS, {"train": 4478, "dev": 499, "test": 891}, 24, 83),
        (SNIPS, {"train": 13_084, "dev": 700, "test": 700}, 7, 39),
    ],
    ids=["atis", "snips"],
)
def test_every_real_utterance_is_read(data_dir, reader, counts, intents, types):
    path = data_dir / "benchmarks" / reader.name
    known = names(reader, path)
    assert (len(known["intent"]), len(known["slots"])) == (intents, 1 + 2 * types)
    for part in reader.parts(path):
        items = list(reader.read(path, part.split, "en"))
        assert len(items) == counts[part.split]
        lines = [file.read_text("utf-8").splitlines() for file in part.files]
        tags = Counter(tag for line in lines[1] for tag in line.split())
        assert Counter(tag for item in items for tag in item.labels["slots"]) == tags
        assert [item.labels["intent"] for item in items] == [line.strip() for line in lines[2]]
        assert [list(item.segments[0].tokens) for item in items] == [x.split() for x in lines[0]]


def test_json_and_python_literals_of_tokens_read_alike(tmp_path):
    tokens = {"tokens": ["a"], "tokenSpans": [{"start": 0, "length": 1}], "other": None}
    items = []
    for column in (json.dumps(tokens), repr(tokens)):
        (tmp_path / "x.txt").write_text(f"1\tIN:A\t0:1:SL:S\ta\td\ten\t-\t{column}\n", "utf-8")
        items += MTOP.read(tmp_path / "x.txt", "train", "en")
    assert items[0] == items[1]
    assert slots(items[0]) == [("a", "B-S")]
