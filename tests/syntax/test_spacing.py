"""White space survives in MISC, whatever it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax.trees.spacing import (
    attribute,
    escape_spaces,
    safe_column,
    space_after,
    space_before,
    spacing_entries,
    surface,
    unescape_spaces,
    with_spacing,
)

white_space = st.text(" \t\n\r\v\f\x1c\x85\xa0\u2028\u3000|\\sn\u200b=x")
anything = st.text(st.characters(exclude_categories=("Cs",)))


def misc_of(entries: list[str]) -> str | None:
    return with_spacing(None, entries)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" ", r"\s"),
        ("\t\n\r", r"\t\n\r"),
        ("|\\", r"\p\\"),
        ("\xa0\u3000", r"\u00A0\u3000"),
        ("\\n", r"\\n"),
        ("a\u200b", "a\u200b"),
    ],
)
def test_escapes_are_those_of_udpipe(text: str, value: str) -> None:
    assert escape_spaces(text) == value
    assert unescape_spaces(value) == text


@pytest.mark.parametrize("value", [r"\q", "\\", r"\u12", r"\uXYZW"])
def test_an_unknown_escape_stands_for_itself(value: str) -> None:
    assert unescape_spaces(value) == value


@given(anything)
def test_escaping_can_be_undone(text: str) -> None:
    value = escape_spaces(text)
    assert unescape_spaces(value) == text
    assert not any(character.isspace() for character in value)
    assert "|" not in value


@given(anything)
def test_a_safe_column_is_one_column_of_one_line(text: str) -> None:
    column = safe_column(text)
    assert column == column.strip() != ""
    assert "\t" not in column
    assert column.splitlines() == [column]


@given(anything, anything, white_space, white_space)
def test_entries_restore_the_spacing(form: str, written: str, before: str, after: str) -> None:
    misc = misc_of(spacing_entries(form, written, before, after))
    assert (space_before(misc), surface(form, misc), space_after(misc)) == (before, written, after)


@pytest.mark.parametrize(
    ("after", "misc"),
    [
        (" ", None),
        ("", "SpaceAfter=No"),
        ("\n", r"SpacesAfter=\n"),
        ("\u200b", "SpaceAfter=No|SpacesAfter=\u200b"),
    ],
)
def test_common_spacing_needs_few_entries(after: str, misc: str | None) -> None:
    assert misc_of(spacing_entries("a", "a", "", after)) == misc


def test_other_entries_stay_in_order() -> None:
    misc = "Gloss=a|SpaceAfter=No|Ref=1"
    assert with_spacing(misc, ["SpaceAfter=No"]) == misc
    assert with_spacing(misc, []) == "Gloss=a|Ref=1"
    assert with_spacing("Ref=1", ["SpaceAfter=No"]) == "SpaceAfter=No|Ref=1"
    assert with_spacing("SpaceAfter=No", []) is None


def test_attributes_are_found_by_their_whole_name() -> None:
    misc = "CorrectSpaceAfter=Yes|SpaceAfter=No"
    assert attribute(misc, "SpaceAfter") == "No"
    assert attribute(misc, "Space") is None
    assert attribute(None, "SpaceAfter") is None
    assert space_after("CorrectSpaceAfter=No") == " "
