"""Edit scripts of lemmas and of multiword tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax.errors import InputError
from syntax.parsing.scripts import (
    SINGLE,
    apply_lemma_script,
    apply_split_script,
    lemma_script,
    split_scripts,
)

COLUMNS = st.text(
    st.characters(exclude_characters="\t\n", exclude_categories=("Cs",)), min_size=1, max_size=12
)


@given(COLUMNS, COLUMNS)
def test_a_script_makes_the_lemma_that_it_was_made_from(form: str, lemma: str) -> None:
    assert apply_lemma_script(lemma_script(form, lemma), form) == lemma


@pytest.mark.parametrize(
    ("form", "lemma", "other", "wanted"),
    [
        ("Dogs", "dog", "cats", "cat"),
        ("walked", "walk", "Talked", "talk"),
        ("English", "English", "Paris", "Paris"),
        ("ENGLISH", "English", "PARIS", "Paris"),
        ("was", "be", "were", "be"),
        ("gespielt", "spielen", "gesagt", "sagen"),
        ("kitaplar", "kitap", "evlar", "ev"),
    ],
)
def test_a_script_generalises_to_other_words(form, lemma, other, wanted) -> None:
    assert apply_lemma_script(lemma_script(form, lemma), other) == wanted


def test_a_word_that_is_too_short_for_a_script_stays() -> None:
    script = lemma_script("walking", "walk")
    assert apply_lemma_script(script, "in") == "in"
    assert apply_lemma_script(script, "ing") == "ing"


@given(st.lists(COLUMNS, min_size=1, max_size=4))
def test_words_that_spell_their_token_come_back(words: list[str]) -> None:
    token = "".join(words)
    for script in split_scripts(token, words):
        assert apply_split_script(script, token) == words


@pytest.mark.parametrize(
    ("token", "words", "other", "wanted"),
    [
        ("don't", ["do", "n't"], "Couldn't", ["Could", "n't"]),
        ("du", ["de", "le"], "Du", ["De", "le"]),
        ("DES", ["DE", "LES"], "des", ["de", "les"]),
        ("dá-lo-ei", ["dá", "-lo", "-ei"], "trará-lo-ei", ["trará", "-lo", "-ei"]),
    ],
)
def test_a_split_generalises_to_other_tokens(token, words, other, wanted) -> None:
    assert wanted in [apply_split_script(one, other) for one in split_scripts(token, words)]


def test_a_single_word_has_the_script_of_single_words() -> None:
    assert split_scripts("dog", ["dog"]) == [SINGLE]
    assert apply_split_script(SINGLE, "dog") == ["dog"]


def test_a_token_that_is_too_short_for_a_script_is_one_word() -> None:
    script = split_scripts("don't", ["do", "n't"])[0]
    assert apply_split_script(script, "n't") == ["n't"]


def test_what_is_not_a_script_is_named() -> None:
    with pytest.raises(InputError, match="is not a script of words"):
        apply_split_script("+1\t2", "don't")
