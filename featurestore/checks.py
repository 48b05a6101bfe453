"""Values that callers give, as the type that was asked for, or refused by name."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

from syntax.errors import SpecError


def whole_number(name: str, value: Any) -> int:
    """An integer of any library as Python's, which JSON can hold.

    Raises:
        SpecError: It is none.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise _wrong(name, value, "a whole number") from None


def flag(name: str, value: Any) -> bool:
    """True or false, and nothing that merely counts as one.

    Raises:
        SpecError: It is neither.
    """
    if not isinstance(value, bool | np.bool_):
        raise _wrong(name, value, "True or False")
    return bool(value)


def text(name: str, value: Any) -> str:
    """A text.

    Raises:
        SpecError: It is none.
    """
    if not isinstance(value, str):
        raise _wrong(name, value, "a text")
    return value


def items(name: str, value: Any) -> tuple[Any, ...]:
    """Several values; one text is not a collection of its characters.

    Raises:
        SpecError: It is no collection.
    """
    if isinstance(value, str):
        raise _wrong(name, value, f"a list: [{value!r}]")
    if not isinstance(value, Iterable):
        raise _wrong(name, value, "a list")
    return tuple(value)


def names(name: str, value: Any) -> tuple[str, ...]:
    """Several texts.

    Raises:
        SpecError: It is no collection of texts.
    """
    return tuple(text(f"one of {name}", one) for one in items(name, value))


def one_of(name: str, value: Any, options: Collection[str]) -> str:
    """A text that is one of a few.

    Raises:
        SpecError: It is none of them.
    """
    if value not in options:
        raise _wrong(name, value, f"one of {', '.join(options)}")
    return str(value)


def optional(check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """A check that lets ``None`` pass."""
    return lambda name, value: None if value is None else check(name, value)


def _wrong(name: str, value: Any, expected: str) -> SpecError:
    return SpecError(f"{name} is {value!r}; it must be {expected}")
