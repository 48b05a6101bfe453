"""CodeXGLUE's files: what is read, and why the rest is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from clients.benchmarks import BENCHMARKS
from syntax.errors import SpecError
from syntax.examples import Example


def read(name: str, folder: Path, split: str) -> list[tuple[object, ...]]:
    """Texts and label of each example; reason and message of each rejection."""
    reader = BENCHMARKS[f"codexglue_{name}"]
    return [
        (*(segment.text for segment in item.segments), *item.labels.values())
        if isinstance(item, Example)
        else (item.reason, item.message)
        for item in reader.read(folder, split, "en")
    ]


def test_summaries_are_joined_tokens_or_the_text(benchmark_files) -> None:
    folder = benchmark_files / "codexglue_summarization"
    assert read("summarization", folder, "train") == [
        ("def add ( a , b ) : return a + b", "Add two numbers ."),
        ("def one(): return 1", "Give one."),
    ]
    blind, *rejected = read("summarization", folder, "dev")
    assert blind == ("pass", None)
    assert [reason for reason, _ in rejected] == ["example", "example", "empty_text", "example"]
    assert "'code_tokens' is 'pass'; expected a list of texts" in rejected[0][1]
    assert "'code' is None; expected a text" in rejected[1][1]


def test_programs_without_code_are_unlabelled(benchmark_files) -> None:
    found = read("generation", benchmark_files / "codexglue_generation", "dev")
    source = "get the size concode_field_sep int size"
    assert found[0] == (source, "int function ( ) { return size ; }")
    assert found[1:3] == [("clear it", None), ("close it", None)]
    assert [reason for reason, _ in found[3:]] == ["example", "example"]


def test_defects_have_labels_of_numbers(benchmark_files) -> None:
    found = read("defect", benchmark_files / "codexglue_defect", "train")
    assert found[0] == ("int f(int *a) { return a[9]; }", "1")
    assert [label for _, label in found[1:3]] == ["0", None]
    assert [reason for reason, _ in found[3:]] == ["label", "label", "example"]


def test_clones_are_pairs_of_functions_by_their_numbers(benchmark_files, tmp_path) -> None:
    folder = benchmark_files / "codexglue_clone"
    found = read("clone", folder, "train")
    one, uno, stop = "int one() { return 1; }", "int uno() { return 1; }", "void stop() { }"
    assert found[:2] == [(one, uno, "1"), (uno, stop, "0")]
    assert [reason for reason, _ in found[2:]] == ["empty_text", "example", "label", "example"]
    assert "data.jsonl has no function '23'" in found[3][1]
    shutil.copy(folder / "train.txt", tmp_path)
    with pytest.raises(SpecError, match=r"no data\.jsonl beside it"):
        read("clone", tmp_path, "train")


def test_translations_are_lines_of_two_files_in_either_direction(benchmark_files, tmp_path) -> None:
    folder = benchmark_files / "codexglue_translation"
    java, cs = "void stop ( ) { }", "void Stop ( ) { }"
    found = read("java_to_cs", folder, "test")
    assert found[2] == (java, cs)
    assert [found[1][0], found[3][0]] == ["empty_text", "example"]
    assert "test.java-cs.txt.cs has no line 4" in found[3][1]
    assert read("cs_to_java", folder, "test")[2] == (cs, java)
    shutil.copy(folder / "test.java-cs.txt.java", tmp_path)
    with pytest.raises(SpecError, match=r"no test\.java-cs\.txt\.cs beside it"):
        read("java_to_cs", tmp_path, "test")
