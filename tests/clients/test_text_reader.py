from __future__ import annotations

import pytest

from clients.benchmarks import BENCHMARKS
from clients.benchmarks.lines import MOST_BYTES
from clients.benchmarks.text import WHOLE_FILES
from syntax.errors import UnknownNameError

TEXT = BENCHMARKS["text"]


def test_text_reader_rejects_empty_lines(benchmark_files):
    items = list(TEXT.read(benchmark_files / "text" / "lines.txt", "train", "en"))
    assert [item.example_id for item in items] == [f"lines-{n}" for n in range(1, 5)]
    assert [getattr(item, "reason", None) for item in items] == [
        None,
        "empty_text",
        "empty_text",
        None,
    ]
    assert items[3].segments[0].text == "Rain fell, and nobody minded."


def test_spaces_around_a_text_are_kept(tmp_path):
    (tmp_path / "a.txt").write_text("  two  spaces \n", "utf-8")
    (item,) = TEXT.read(tmp_path, "train", "en")
    assert item.segments[0].text == "  two  spaces "


@pytest.fixture
def corpus(tmp_path):
    for name in ("b/2.txt", "a.txt", "b/1.txt", "b/c/3.txt"):
        path = tmp_path / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name} one.\n{name} two.\n", "utf-8")
    (tmp_path / "corpus" / "notes.md").write_text("not a text\n", "utf-8")
    return tmp_path / "corpus"


def test_folders_below_are_read_and_named_in_ids(corpus):
    ids = [item.example_id for item in TEXT.read(corpus, "train", "en")]
    assert ids == ["a-1", "a-2", "b/1-1", "b/1-2", "b/2-1", "b/2-2", "b/c/3-1", "b/c/3-2"]


def test_a_file_may_be_one_text(corpus):
    items = list(WHOLE_FILES.read(corpus, "train", "en"))
    assert [item.example_id for item in items] == ["a", "b/1", "b/2", "b/c/3"]
    assert items[0].segments[0].text == "a.txt one.\na.txt two.\n"


def test_bad_files_are_named(tmp_path):
    faults = {"a": b" \n", "b": b"\xff\xfeb\x00", "c": b"caf\xe9", "d": b"a" * (MOST_BYTES + 1)}
    for name, content in {**faults, "e": b"good"}.items():
        (tmp_path / f"{name}.txt").write_bytes(content)
    items = list(WHOLE_FILES.read(tmp_path, "train", "en"))
    assert [getattr(item, "reason", item.example_id) for item in items] == [
        *("empty_text", "input", "invalid_character", "text_too_long", "e"),
    ]
    assert {item.reason for item in items if hasattr(item, "reason")} <= set(WHOLE_FILES.rejects)


def test_folders_named_after_splits_are_splits(tmp_path):
    for name in ("train/x/1.txt", "valid/1.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text("One.\n", "utf-8")
    assert [(part.split, part.lang) for part in TEXT.parts(tmp_path)] == [
        ("dev", "*"),
        ("train", "*"),
    ]
    assert [item.example_id for item in TEXT.read(tmp_path, "train", "en")] == ["x/1-1"]
    assert [item.example_id for item in TEXT.read(tmp_path, "dev", "en")] == ["1-1"]
    with pytest.raises(UnknownNameError, match="unknown split of text 'test'"):
        TEXT.read(tmp_path, "test", "en")
