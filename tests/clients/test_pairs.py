from __future__ import annotations

import csv
import io
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.benchmarks import BENCHMARKS
from clients.benchmarks.pairs import unquoted
from syntax.examples import Example, Rejection

XNLI, PAWSX = BENCHMARKS["xnli"], BENCHMARKS["pawsx"]


def test_pairs_become_examples_with_both_texts_and_the_label(benchmark_files):
    first, second, _ = XNLI.read(benchmark_files / "pairs", "dev", "en")
    assert isinstance(first, Example)
    assert [segment.text for segment in first.segments] == ["The cat slept.", "The cat was asleep."]
    assert first.labels == {"label": "entailment"}
    assert isinstance(second, Example)
    assert [s.text for s in second.segments] == ['Nobody "slept".', '"Slept," he said.']


def test_translations_share_their_id_although_a_line_is_rejected(benchmark_files):
    english = list(XNLI.read(benchmark_files / "pairs", "dev", "en"))
    german = list(XNLI.read(benchmark_files / "pairs", "dev", "de"))
    assert [item.example_id for item in english] == ["dev-1", "dev-2", "dev-3"]
    assert [item.example_id for item in german] == ["dev-1", "dev-2", "dev-3"]
    assert isinstance(german[1], Rejection)


def test_wrong_field_counts_are_rejected_by_line(benchmark_files):
    items = list(XNLI.read(benchmark_files / "pairs/bad/wrong-field-count.tsv", "dev", "en"))
    assert [getattr(item, "reason", None) for item in items] == ["example"] * 3 + [None]
    assert items[1].message == (
        "wrong-field-count.tsv, line 2 has 4 fields; "
        "expected 3 separated by TAB: two sentences and a label"
    )


def test_unknown_labels_are_rejected_with_the_known_ones(benchmark_files):
    items = list(XNLI.read(benchmark_files / "pairs/bad/unknown-label.tsv", "dev", "en"))
    assert [item.reason for item in items] == ["label", "label"]
    assert "'Entailment'; expected one of entailment, neutral, contradiction" in items[0].message


def test_a_line_that_is_not_utf8_is_rejected_alone(tmp_path):
    file = tmp_path / "dev-en.tsv"
    file.write_bytes(b"\xef\xbb\xbfA.\tB.\t1\r\nC\xff\tD\t0\r\nE.\tF.\t0\r\n")
    first, bad, last = PAWSX.read(tmp_path, "dev", "en")
    assert first.segments[0].text == "A."
    assert first.labels == {"label": "1"}
    assert (bad.example_id, bad.reason) == ("dev-2", "invalid_character")
    assert last.labels == {"label": "0"}


def test_the_authors_files_of_xnli_hold_several_languages(tmp_path):
    rows = [
        "language\tgold_label\tsentence1\tsentence2\tgenre",
        'de\tneutral\tDas "Boot".\tB.\tx',
        "en\tentailment\tThe boat.\tB.\tx",
        "en\tneutral\tShort.",
        "de\tcontradiction\tC.\tD.\tx",
        "en\tno\tE.\tF.\tx",
    ]
    (tmp_path / "xnli.dev.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    assert [(x.split, x.lang) for x in XNLI.parts(tmp_path)] == [("dev", "de"), ("dev", "en")]
    german, english = (list(XNLI.read(tmp_path, "dev", lang)) for lang in ("de", "en"))
    assert [item.example_id for item in german] == ["dev-1", "dev-2"]
    assert german[0].segments[0].text == 'Das "Boot".'
    assert german[1].labels == {"label": "contradiction"}
    assert [getattr(item, "reason", "") for item in english] == ["", "example", "label"]
    assert list(XNLI.read(tmp_path / "xnli.dev.tsv", "dev", "de")) == german


def test_an_empty_line_of_xnli_names_no_language(tmp_path):
    lines = "language\tgold_label\tsentence1\tsentence2\nen\tneutral\tA.\tB.\n\n"
    (tmp_path / "xnli.dev.tsv").write_text(lines, "utf-8")
    assert [part.lang for part in XNLI.parts(tmp_path)] == ["en"]


def test_translated_training_files_of_xnli_are_read(tmp_path):
    text = "premise\thypo\tlabel\nA.\tB.\tcontradictory\nC.\tD.\tneutral\n"
    (tmp_path / "multinli.train.sw.tsv").write_text(text, "utf-8")
    first, second = XNLI.read(tmp_path, "train", "sw")
    assert (first.example_id, first.labels) == ("train-1", {"label": "contradiction"})
    assert second.labels == {"label": "neutral"}


def test_the_authors_files_of_paws_have_a_header_and_numbers(tmp_path):
    (tmp_path / "de").mkdir()
    lines = "id\tsentence1\tsentence2\tlabel\n1\tA.\tB.\t1\n3\tC.\tD.\n\t\n"
    (tmp_path / "de" / "dev_2k.tsv").write_text(lines, "utf-8")
    (tmp_path / "test.tsv").write_text(lines, "utf-8")
    assert [(part.split, part.lang) for part in PAWSX.parts(tmp_path)] == [
        ("dev", "de"),
        ("test", "en"),
    ]
    good, short, empty = PAWSX.read(tmp_path, "dev", "de")
    assert (good.example_id, good.labels) == ("dev-1", {"label": "1"})
    assert [segment.text for segment in good.segments] == ["A.", "B."]
    assert (short.example_id, short.reason) == ("dev-3", "example")
    assert (empty.example_id, empty.reason) == ("dev-line-4", "example")


def test_a_text_that_is_empty_is_left_to_the_service(tmp_path):
    (tmp_path / "dev-en.tsv").write_text("\tB.\tneutral\n", "utf-8")
    (item,) = XNLI.read(tmp_path, "dev", "en")
    assert item.segments[0].text == ""


def test_csv_quoting_is_undone(benchmark_files):
    items = list(XNLI.read(benchmark_files / "pairs/bad/csv-quoted.tsv", "dev", "en"))
    texts = [segment.text for item in items for segment in item.segments]
    assert texts == ['He said "no" twice.', "He spoke.", '"No"', '"No."']


@given(st.text(st.characters(exclude_characters="\t\r\n", exclude_categories=["Cs"])))
def test_unquoted_restores_what_a_csv_writer_quoted(text):
    file = io.StringIO()
    csv.writer(file, dialect="excel-tab", lineterminator="\n").writerow([text, "x"])
    field = file.getvalue().removesuffix("\tx\n")
    quoted_for_nothing = field != text and '"' not in text
    assert unquoted(field) == text or quoted_for_nothing


@pytest.mark.parametrize(
    "text", ["", '"', '""', '"""', 'a"b', '"a', 'a"', '"a"', '"a" or "b"', '"a", "b"', '""a""b']
)
def test_plain_quotation_marks_stay(text):
    assert unquoted(text) == text


@pytest.mark.parametrize("lang", ["de", "en", "es", "fr", "ru", "tr", "vi", "zh"])
def test_every_real_xnli_line_is_read(data_dir, lang):
    items = list(XNLI.read(data_dir / "benchmarks/xnli", "dev", lang))
    assert Counter(item.labels["label"] for item in items) == {
        "entailment": 830,
        "neutral": 830,
        "contradiction": 830,
    }


@pytest.mark.parametrize("lang", ["de", "en", "es", "fr", "ja", "ko", "zh"])
def test_every_real_pawsx_line_is_read_without_csv_quoting(data_dir, lang):
    items = list(PAWSX.read(data_dir / "benchmarks/pawsx", "dev", lang))
    assert len(items) == 2000
    assert all(isinstance(item, Example) for item in items)
    texts = [segment.text for item in items for segment in item.segments]
    path = data_dir / f"benchmarks/pawsx/dev-{lang}.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        by_csv = [row[:2] for row in csv.reader(file, dialect="excel-tab")]
    assert texts == [text for row in by_csv for text in row]
