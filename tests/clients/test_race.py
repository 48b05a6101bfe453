from __future__ import annotations

from collections import Counter

import pytest

from clients.benchmarks import BENCHMARKS
from syntax.examples import Example, Rejection

RACE = BENCHMARKS["race"]


def fates(items):
    return {item.example_id: getattr(item, "reason", None) for item in items}


def test_each_question_has_its_passage_four_options_and_the_level(benchmark_files):
    items = [x for x in RACE.read(benchmark_files / "race", "dev", "en") if isinstance(x, Example)]
    assert [item.example_id for item in items] == ["middle7-1", "high31-1", "high31-2"]
    assert [segment.text for segment in items[0].segments] == [
        "A heron stood in the café’s pond. Nobody fed it.",
        "Where was the heron?",
        *("In a tree.", "In a pond.", "In a car.", "On a roof."),
    ]
    assert [item.labels for item in items] == [
        {"label": "B", "level": "middle"},
        {"label": "A", "level": "high"},
        {"label": "B", "level": "high"},
    ]


def test_a_broken_file_is_one_rejection_and_the_others_are_read(benchmark_files):
    assert fates(RACE.read(benchmark_files / "race", "dev", "en")) == {
        "middle7-1": None,
        "middle8": "example",
        "high31-1": None,
        "high31-2": None,
    }


def test_faulty_questions_are_rejected_alone(benchmark_files):
    first, few, missing = RACE.read(benchmark_files / "race", "train", "en")
    assert isinstance(first, Example)
    assert "the options ['a', 'b', 'c']; expected a list of four" in few.message
    assert "the options None" in missing.message


def test_a_single_file_is_read_in_its_folder(benchmark_files, tmp_path):
    path = benchmark_files / "race/dev/high/31.txt"
    assert list(fates(RACE.read(path, "dev", "en"))) == ["high31-1", "high31-2"]
    elsewhere = tmp_path / "31.txt"
    elsewhere.write_bytes(path.read_bytes())
    for item in RACE.read(elsewhere, "dev", "en"):
        assert isinstance(item, Rejection)
        assert item.message.endswith("; expected one of middle, high")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[]", "example"),
        (b"[" * 100_000, "example"),
        (b'{"questions": []}', "example"),
        (b'{"questions": 3, "options": [], "answers": []}', "example"),
        (b'{"article": "\xe9", "questions": ["q"], "options": [["a", "b", "c", "d"]], '
         b'"answers": ["A"]}', "invalid_character"),
        (b'{"article": "a", "questions": ["q"], "options": [["a", "b", "c", "d"]], '
         b'"answers": ["E"]}', "label"),
        (b'{"article": "a", "questions": [], "options": [["a", "b", "c", "d"]], '
         b'"answers": ["A"]}', "example"),
        ('{"questions": []}'.encode("utf-16"), "input"),
    ],
)  # fmt: skip
def test_faults_are_named(tmp_path, content, reason):
    path = tmp_path / "dev/high/1.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    (item,) = RACE.read(tmp_path, "dev", "en")
    assert item.reason == reason


def test_every_real_question_is_read(data_dir):
    items = list(RACE.read(data_dir / "benchmarks/race", "dev", "en"))
    assert len({item.example_id for item in items}) == len(items) == 4887
    assert Counter(item.labels["level"] for item in items) == {"high": 3451, "middle": 1436}
    labels = Counter(item.labels["label"] for item in items)
    assert labels == {"A": 1067, "B": 1291, "C": 1303, "D": 1226}
    assert len({item.segments[0].text for item in items}) == 1389
