"""The reader of parallel text whose target is a label."""

from __future__ import annotations

import pytest

from clients.benchmarks import TRANSLATION
from clients.benchmarks.recognise import recognised
from syntax.errors import SpecError
from syntax.examples import Example, Rejection


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "val.en").write_text("Two men.\nA dog.\n\nBees.\n", "utf-8")
    (tmp_path / "val.de").write_text("Zwei Männer.\n\nKatzen.\nBienen. \n", "utf-8")
    return tmp_path


def test_the_other_language_is_the_label(folder) -> None:
    found = list(TRANSLATION.read(folder, "dev", "en"))
    examples = [one for one in found if isinstance(one, Example)]
    assert [one.example_id for one in examples] == ["dev-1", "dev-4"]
    assert [one.segments[0].text for one in examples] == ["Two men.", "Bees."]
    assert [len(one.segments) for one in examples] == [1, 1]
    assert [one.labels["target"] for one in examples] == ["Zwei Männer.", "Bienen."]
    assert [one.reason for one in found if isinstance(one, Rejection)] == ["empty_text"] * 2
    back = [one for one in TRANSLATION.read(folder, "dev", "de") if isinstance(one, Example)]
    assert [one.labels["target"] for one in back] == ["Two men.", "Bees."]


def test_the_same_files_are_guessed_to_be_parallel(folder) -> None:
    assert recognised(folder) == "parallel"


def test_a_tsv_has_both_sides(tmp_path) -> None:
    (tmp_path / "talk.de-en.tsv").write_text("Ja.\tYes.\nNein.\tNo.\n", "utf-8")
    (example, _) = TRANSLATION.read(tmp_path, "talk.de-en", "en")
    assert isinstance(example, Example)
    assert (example.segments[0].text, example.labels["target"]) == ("Yes.", "Ja.")


def test_what_leaves_the_target_open_is_refused(folder) -> None:
    with pytest.raises(SpecError, match="no translation beside it"):
        list(TRANSLATION.read(folder / "val.en", "train", "xx"))
    (folder / "val.fr").write_text("Deux hommes.\n", "utf-8")
    with pytest.raises(SpecError, match="de, en, fr"):
        TRANSLATION.parts(folder)
