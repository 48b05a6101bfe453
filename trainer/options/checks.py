"""Names of the entries of a recipe's lists, and several faults as one error."""

from __future__ import annotations

from collections.abc import Sequence

from syntax.errors import ParsebankError, SpecError


def check_entry_name(kind: str, name: str, *taken: str) -> None:
    if not name.isidentifier() or name in taken:
        reserved = f", and not {', '.join(taken)}" if taken else ""
        raise SpecError(
            f"one of {kind} has the name {name!r}; give letters, digits and '_'{reserved}"
        )


def check_unique(name: str, values: Sequence[str]) -> None:
    if twice := sorted({value for value in values if values.count(value) > 1}):
        raise SpecError(f"{name} has {', '.join(twice)} twice; give each entry its own name")


def raise_all(faults: Sequence[ParsebankError]) -> None:
    """Raise the one fault, or an error that lists all of them; nothing without any."""
    if len(faults) > 1:
        listed = "".join(f"\n  {fault.message}" for fault in faults)
        raise SpecError(f"there are {len(faults)} mistakes:{listed}")
    if faults:
        raise faults[0]
