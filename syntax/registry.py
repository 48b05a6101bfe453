"""One way to name the things that vary: parsers, policies, readers, models, tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import TypeVar

from syntax.errors import SpecError, UnknownNameError

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """Names to implementations, in order of registration.

    Args:
        kind: What is registered, in the singular; it appears in error messages.
        error: The error for an unknown name.

    >>> letters: Registry[int] = Registry("letter")
    >>> letters.add("alpha", 1)
    1
    >>> letters["alpha"], list(letters)
    (1, ['alpha'])
    """

    def __init__(self, kind: str, error: type[UnknownNameError] = UnknownNameError) -> None:
        self.kind = kind
        self._error = error
        self._items: dict[str, T] = {}

    def add(self, name: str, item: T) -> T:
        """Register ``item`` and return it.

        Raises:
            SpecError: The name is taken.
        """
        if name in self._items:
            raise SpecError(f"the {self.kind} {name!r} is registered twice", name=name)
        self._items[name] = item
        return item

    def __getitem__(self, name: str) -> T:
        try:
            return self._items[name]
        except KeyError:
            raise unknown_name(self.kind, name, self._items, self._error) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, name: object) -> bool:
        # Mapping's own version waits for a KeyError, which ours is not.
        return name in self._items


def unknown_name(
    kind: str,
    name: str,
    known: Iterable[str],
    error: type[UnknownNameError] = UnknownNameError,
) -> UnknownNameError:
    """The error for a name that is not among the known ones, with the nearest one first."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(names) or "none"
    return error(f"unknown {kind} {name!r}.{hint} Known: {listed}.", name=name, known=names)
