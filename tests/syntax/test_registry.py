"""Names, their newest versions, and helpful errors for the unknown ones."""

from __future__ import annotations

import pytest

from syntax import Registry
from syntax.errors import SpecError, UnknownNameError, UnknownParserError


@pytest.fixture
def letters() -> Registry[str]:
    registry: Registry[str] = Registry("letter", UnknownParserError)
    for name, letter in [("alpha.v9", "old"), ("alpha.v10", "new"), ("beta.v1", "b"), ("c", "c")]:
        registry.add(name, letter)
    return registry


def test_a_registry_is_a_mapping_in_order_of_registration(letters: Registry[str]) -> None:
    assert list(letters) == ["alpha.v9", "alpha.v10", "beta.v1", "c"]
    assert list(letters.values()) == ["old", "new", "b", "c"]
    assert len(letters) == 4


def test_a_name_without_version_is_its_newest(letters: Registry[str]) -> None:
    assert letters["alpha"] == "new"
    assert letters.resolve("alpha") == "alpha.v10"
    assert letters["alpha.v9"] == "old"


def test_an_exact_name_comes_first(letters: Registry[str]) -> None:
    letters.add("alpha", "plain")
    assert letters["alpha"] == "plain"


def test_an_alias_stands_for_a_name_and_is_not_listed(letters: Registry[str]) -> None:
    letters.alias("first", "alpha")
    assert letters["first"] == "new"
    assert letters.resolve("first") == "alpha.v10"
    assert "first" in letters
    assert "first" not in list(letters)


def test_an_alias_needs_a_free_name_and_a_known_one(letters: Registry[str]) -> None:
    with pytest.raises(SpecError, match="'c' is registered twice"):
        letters.alias("c", "alpha")
    with pytest.raises(UnknownParserError, match="unknown letter 'delta'"):
        letters.alias("d", "delta")


@pytest.mark.parametrize("name", ["alph", "alpha.v", "alpha.v1", "c.v1", "", None, 3])
def test_unknown_names_are_not_contained(letters: Registry[str], name: object) -> None:
    assert name not in letters


def test_an_unknown_name_lists_the_known_ones(letters: Registry[str]) -> None:
    with pytest.raises(UnknownParserError) as caught:
        letters["beta.v2"]
    assert str(caught.value) == (
        "unknown letter 'beta.v2'. Did you mean 'beta.v1'? Known: alpha.v10, alpha.v9, beta.v1, c."
    )
    assert caught.value.detail["name"] == "beta.v2"


def test_an_empty_registry_says_so() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown thing 'x'. Known: none."):
        Registry("thing")["x"]
