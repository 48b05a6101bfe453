"""Values that no run can be made with, refused by name."""

from __future__ import annotations

from collections.abc import Sequence

from syntax.errors import ParsebankError, SpecError


def check_positive(name: str, value: int) -> None:
    """Refuse a count below 1.

    Raises:
        SpecError: It is.
    """
    check_range(name, value, 1)


def check_range(name: str, value: float, low: float, high: float | None = None) -> None:
    """Refuse a number outside its range, both ends of which are allowed.

    Raises:
        SpecError: With the option, its value and its range.
    """
    # Put so that NaN, which is neither below nor above anything, is refused too.
    if not (value >= low and (high is None or value <= high)):
        upper = "" if high is None else f" and at most {high}"
        raise SpecError(f"{name} is {value}; it must be at least {low}{upper}")


def check_share(name: str, value: float) -> None:
    """Refuse a share that is not above 0 and at most 1.

    Raises:
        SpecError: It is not.
    """
    if not 0 < value <= 1:
        raise SpecError(f"{name} is {value}; it must be above 0 and at most 1")


def check_entry_name(kind: str, name: str, *taken: str) -> None:
    """Refuse a name that no setting can address, or that stands for something else.

    Raises:
        SpecError: The name is not made of letters, digits and ``_``, or is taken.
    """
    if not name.isidentifier() or name in taken:
        reserved = f", and not {', '.join(taken)}" if taken else ""
        raise SpecError(
            f"one of {kind} has the name {name!r}; give letters, digits and '_'{reserved}"
        )


def check_unique(name: str, values: Sequence[str]) -> None:
    """Refuse entries of one name.

    Raises:
        SpecError: Two entries have the same.
    """
    if twice := sorted({value for value in values if values.count(value) > 1}):
        raise SpecError(f"{name} has {', '.join(twice)} twice; give each entry its own name")


def raise_all(faults: Sequence[ParsebankError]) -> None:
    """Raise the one fault, or an error that lists all of them; nothing without any."""
    if len(faults) > 1:
        listed = "".join(f"\n  {fault.message}" for fault in faults)
        raise SpecError(f"there are {len(faults)} mistakes:{listed}")
    if faults:
        raise faults[0]
