"""Options that are defined once: their checks, their inheritance, their table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from syntax.errors import SpecError
from syntax.options import Option, check_options, checked, options_of, options_table

Colour = Literal["red", "blue"]


@dataclass(frozen=True, slots=True)
class Paint:
    colour: Annotated[Colour, Option("Which | colour.")] = "red"
    coats: Annotated[int | None, Option("How many; `None` for none.", low=1)] = None
    notes: str = "no option"

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Varnish(Paint):
    name: Annotated[str, Option("What it is called.")]
    coats: int = 2


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        (int, np.int64(3), 3),
        (int | None, None, None),
        (bool, np.True_, True),
        (tuple[str, ...], ["a", "b"], ("a", "b")),
        (tuple[int | None, ...], (4, None), (4, None)),
        (Colour | tuple[Colour, ...], "red", "red"),
        (Colour | tuple[Colour, ...], ["red", "blue"], ("red", "blue")),
        (Mapping[str, int] | tuple[str, ...] | None, {"a": 1}, {"a": 1}),
        (Mapping[str, int] | tuple[str, ...] | None, ["a"], ("a",)),
    ],
)
def test_values_are_converted_to_the_type_of_the_option(kind: Any, given: Any, value: Any) -> None:
    found = checked("option", kind, given)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (int, 2.5, r"option is 2\.5; it must be a whole number"),
        (int, 0, "option is 0; it must be at least 1"),
        (int | None, "4", "option is '4'; it must be a whole number"),
        (bool, "no", "option is 'no'; it must be True or False"),
        (str, None, "option is None; it must be a text"),
        (Colour, "green", "option is 'green'; it must be one of red, blue"),
        (Colour | tuple[Colour, ...], "green", "one of red, blue"),
        (tuple[str, ...], "depth", r"option is 'depth'; it must be a list: \['depth'\]"),
        (tuple[str, ...], 5, "option is 5; it must be a list"),
        (tuple[int, ...], (1, 0), "one of option is 0; it must be at least 1"),
        (Paint, "red", "it must be a Paint"),
    ],
)
def test_invalid_values_are_refused_by_name(kind: Any, given: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        checked("option", kind, given, low=1)


def test_a_subclass_inherits_checks_and_documentation() -> None:
    assert list(options_of(Varnish)) == ["colour", "coats", "name"]
    assert options_of(Varnish)["coats"].doc == options_of(Paint)["coats"].doc
    with pytest.raises(SpecError, match="coats is 0; it must be at least 1"):
        Varnish(name="shellac", coats=0)
    with pytest.raises(SpecError, match="coats is None; it must be a whole number"):
        Varnish(name="shellac", coats=None)  # type: ignore[arg-type]


def test_the_table_has_a_row_for_each_option() -> None:
    assert options_table(Varnish).splitlines() == [
        "| option | type | default | what it decides |",
        "|---|---|---|---|",
        "| `colour` | `'red'`, `'blue'` | `'red'` | Which \\| colour. |",
        "| `coats` | whole number, at least 1 | `2` | How many; `None` for none. |",
        "| `name` | text | needed | What it is called. |",
    ]
