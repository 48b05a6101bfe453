from __future__ import annotations

import pytest

from syntax.errors import SpecError, UnknownNameError
from syntax.lists import ParserChoice, listed


@pytest.mark.parametrize(
    ("given", "items"),
    [
        (None, ()),
        ([], ()),
        ("en", ("en",)),
        (" en , fr", ("en", "fr")),
        (("en", "fr,de"), ("en", "fr", "de")),
        ("gate_distance(keep=1,2),depth", ("gate_distance(keep=1,2)", "depth")),
        ('"first, second",third', ("first, second", "third")),
        ("text(,label", ("text(", "label")),
    ],
)
def test_a_list_is_written_with_commas_or_item_by_item(given, items) -> None:
    assert listed(given) == items


@pytest.mark.parametrize("given", ["", "en,", "en,,fr", ["en", ""], '""'])
def test_an_empty_item_is_refused(given) -> None:
    with pytest.raises(SpecError, match="has an empty item; write a list as en,fr"):
        listed(given)


def test_a_choice_of_parsers_is_read_and_written() -> None:
    for text in ("udpipe/english-ewt", "en:a/b,fr:c/d", "en:a/b,c/d", "0f3a9c"):
        assert str(ParserChoice.read(text)) == text
    assert ParserChoice.read(["en:a/b", "fr:c/d"]) == ParserChoice.read({"en": "a/b", "fr": "c/d"})
    assert ParserChoice.read(None).of("en") is None
    assert ParserChoice.read("en:a/b,c/d").of("fr") == "c/d"
    assert ParserChoice.read("stanza/fr:gsd").other == "stanza/fr:gsd"


def test_two_parsers_for_one_language_are_refused() -> None:
    with pytest.raises(SpecError, match="second parser for en; choose one for each language"):
        ParserChoice.read("en:a/b,en:c/d")
    with pytest.raises(SpecError, match="'c/d' is a second parser for all languages"):
        ParserChoice.read("a/b,c/d")


def test_a_choice_for_a_language_that_is_not_read_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"for 'de', which is not read here.* are en, fr"):
        ParserChoice.read("en:a/b,de:c/d").check({"fr", "en"})
