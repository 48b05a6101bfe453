from __future__ import annotations

from clients.benchmarks import BENCHMARKS

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


def test_a_folder_is_read_in_order_of_names(tmp_path):
    for name in ("b", "a"):
        (tmp_path / f"{name}.txt").write_text(f"This is {name}.\n", "utf-8")
    (tmp_path / "notes.md").write_text("not a text\n", "utf-8")
    items = list(TEXT.read(tmp_path, "train", "en"))
    assert [(i.example_id, i.segments[0].text) for i in items] == [
        ("a-1", "This is a."),
        ("b-1", "This is b."),
    ]


def test_spaces_around_a_text_are_kept(tmp_path):
    (tmp_path / "a.txt").write_text("  two  spaces \n", "utf-8")
    (item,) = TEXT.read(tmp_path, "train", "en")
    assert item.segments[0].text == "  two  spaces "
