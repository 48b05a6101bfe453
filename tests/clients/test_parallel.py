from __future__ import annotations

import pytest

from clients.benchmarks import BENCHMARKS
from syntax.errors import SpecError
from syntax.examples import Example

PARALLEL = BENCHMARKS["parallel"]


def texts(items):
    return {x.example_id: x.segments[0].text for x in items if isinstance(x, Example)}


def fates(items):
    return {item.example_id: getattr(item, "reason", None) for item in items}


def test_every_language_of_every_text_is_a_part(benchmark_files):
    parts = [(part.split, part.lang) for part in PARALLEL.parts(benchmark_files / "parallel")]
    assert parts == [
        ("dev", "de"),
        ("dev", "en"),
        ("dev", "fr"),
        ("talk.de-en", "de"),
        ("talk.de-en", "en"),
        ("talk.es-en", "en"),
        ("talk.es-en", "es"),
    ]


def test_translations_share_their_ids_whatever_is_rejected(benchmark_files):
    folder = benchmark_files / "parallel"
    english = texts(PARALLEL.read(folder, "dev", "en"))
    german = texts(PARALLEL.read(folder, "dev", "de"))
    assert english == {
        "dev-1": "The ferry leaves at noon.",
        "dev-2": "Bring a warm coat.",
        "dev-4": 'She said "no".',
    }
    assert german["dev-4"] == "Sie sagte „nein“."
    assert fates(PARALLEL.read(folder, "dev", "en"))["dev-3"] == "empty_text"
    assert fates(PARALLEL.read(folder, "dev", "de"))["dev-3"] is None


def test_source_and_target_of_a_translation_share_the_text(benchmark_files):
    for item in PARALLEL.read(benchmark_files / "parallel", "dev", "fr"):
        assert item.segments[0] == item.segments[1]


def test_table_of_pairs_gives_a_part_per_language(benchmark_files):
    folder = benchmark_files / "parallel"
    assert texts(PARALLEL.read(folder, "talk.de-en", "de"))["talk.de-en-2"] == "Wie spät ist es?"
    assert texts(PARALLEL.read(folder, "talk.de-en", "en"))["talk.de-en-2"] == "What time is it?"
    spanish = list(PARALLEL.read(folder, "talk.es-en", "es"))
    assert texts(spanish) == {"talk.es-en-1": "Buenas noches."}
    assert spanish[1].message.startswith("talk.es-en.tsv, line 2 has 1 fields; expected two texts")


def test_a_table_of_pairs_must_say_its_languages(benchmark_files):
    path = benchmark_files / "parallel/talk.de-en.tsv"
    assert list(texts(PARALLEL.read(path, "dev", "en"))) == ["dev-1", "dev-2"]
    with pytest.raises(SpecError, match=r"does not say which of its columns is 'fr'"):
        list(PARALLEL.read(path, "dev", "fr"))


def test_a_missing_line_is_a_rejection_in_every_language(tmp_path):
    (tmp_path / "dev.en").write_text("one\ntwo\nthree\n", "utf-8")
    (tmp_path / "dev.de").write_text("eins\nzwei\n", "utf-8")
    english, german = (list(PARALLEL.read(tmp_path, "dev", lang)) for lang in ("en", "de"))
    assert fates(english) == fates(german) == {"dev-1": None, "dev-2": None, "dev-3": "example"}
    assert english[2].message == german[2].message
    assert english[2].message.startswith("dev.de has no line 3, but its translations do")


def test_bad_byte_rejects_its_line_in_its_language_only(tmp_path):
    (tmp_path / "dev.en").write_bytes(b"caf\xe9\ntea\n")
    (tmp_path / "dev.de").write_bytes("Kaffee\r\nTee\r\n".encode("utf-8-sig"))
    assert fates(PARALLEL.read(tmp_path, "dev", "en"))["dev-1"] == "invalid_character"
    assert texts(PARALLEL.read(tmp_path, "dev", "de")) == {"dev-1": "Kaffee", "dev-2": "Tee"}


def test_one_file_is_one_language(benchmark_files):
    items = PARALLEL.read(benchmark_files / "parallel/dev.fr", "test", "fr")
    assert list(texts(items)) == ["test-1", "test-2", "test-3", "test-4"]
