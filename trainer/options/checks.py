"""Values that no run can be made with, refused by name."""

from __future__ import annotations

from syntax.errors import SpecError


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
