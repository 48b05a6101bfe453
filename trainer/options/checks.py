"""Values that no run can be made with, refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from syntax.errors import ParsebankError, SpecError


class Bounds(NamedTuple):
    """What a number may be; stands in the annotation of an option.

    Attributes:
        low: The smallest number.
        high: The largest one.
        above: Refuse ``low`` itself, too.
    """

    low: float
    high: float | None = None
    above: bool = False


Count: TypeAlias = Annotated[int, Bounds(1)]
NonNegativeInt: TypeAlias = Annotated[int, Bounds(0)]
NonNegative: TypeAlias = Annotated[float, Bounds(0)]
Positive: TypeAlias = Annotated[float, Bounds(0, above=True)]
Probability: TypeAlias = Annotated[float, Bounds(0, 1)]
Share: TypeAlias = Annotated[float, Bounds(0, 1, above=True)]


_KINDS: Final[dict[type[Any], dict[str, Any]]] = {}
"""Annotations of the fields of each class that has been checked."""


def check_fields(prefix: str, options: Any) -> None:
    """Check each field of a dataclass by its annotation: numbers by `Bounds`, names by `Literal`.

    A subclass that has a ``__post_init__`` of its own calls its base's, which checks the fields of
    both.
    """
    owner = type(options)
    if owner not in _KINDS:
        hints = get_type_hints(owner, include_extras=True)
        _KINDS[owner] = {field.name: hints[field.name] for field in fields(owner)}
    for name, kind in _KINDS[owner].items():
        _check_value(f"{prefix}.{name}" if prefix else name, kind, getattr(options, name))


def _check_value(name: str, kind: Any, value: Any) -> None:
    origin, given = get_origin(kind), get_args(kind)
    if origin is Literal and value not in given:
        raise SpecError(f"{name} is {value!r}; it is one of {', '.join(map(str, given))}")
    if origin is Annotated:
        for bounds in (note for note in given[1:] if isinstance(note, Bounds)):
            _check_number(name, value, bounds)
    elif origin is tuple and isinstance(value, tuple | list):
        for item in value:
            _check_value(name, given[0], item)
    elif origin in (Union, UnionType) and value is not None:
        names = _names(given)
        kinds = [one for one in given if get_origin(one) is not Literal]
        for one in kinds if value not in names else ():
            _check_value(name, one, value)


def _names(kinds: Sequence[Any]) -> list[Any]:
    return [name for kind in kinds if get_origin(kind) is Literal for name in get_args(kind)]


def _check_number(name: str, value: Any, bounds: Bounds) -> None:
    if not isinstance(value, int | float | np.number):
        raise SpecError(f"{name} is {value!r}; it must be a number")
    check_range(name, float(value) if isinstance(value, np.number) else value, *bounds)


def check_range(
    name: str, value: float, low: float, high: float | None = None, above: bool = False
) -> None:
    """Refuse a number outside its range, whose ends are allowed, but for ``low`` with ``above``."""
    # Put so that NaN, which is neither below nor above anything, is refused too.
    is_low = not (value > low if above else value >= low)
    if is_low or not (high is None or value <= high):
        lower = f"above {low}" if above else f"at least {low}"
        upper = "" if high is None else f" and at most {high}"
        raise SpecError(f"{name} is {value}; it must be {lower}{upper}")


def check_entry_name(kind: str, name: str, *taken: str) -> None:
    """Refuse a name that no setting can address, or that stands for something else."""
    if not name.isidentifier() or name in taken:
        reserved = f", and not {', '.join(taken)}" if taken else ""
        raise SpecError(
            f"one of {kind} has the name {name!r}; give letters, digits and '_'{reserved}"
        )


def check_unique(name: str, values: Sequence[str]) -> None:
    """Refuse entries of one name."""
    if twice := sorted({value for value in values if values.count(value) > 1}):
        raise SpecError(f"{name} has {', '.join(twice)} twice; give each entry its own name")


def raise_all(faults: Sequence[ParsebankError]) -> None:
    """Raise the one fault, or an error that lists all of them; nothing without any."""
    if len(faults) > 1:
        listed = "".join(f"\n  {fault.message}" for fault in faults)
        raise SpecError(f"there are {len(faults)} mistakes:{listed}")
    if faults:
        raise faults[0]
