"""One way to name the things that vary: parsers, policies, readers, models, tasks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final, TypeVar

from syntax.errors import SpecError, UnknownNameError

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """Names to implementations, in order of registration.

    What can change its behaviour is registered under a versioned name; without the version it
    answers too, as its newest one. Whatever is stored should record `resolve`'s full name.

    Args:
        kind: What is registered, in the singular; it appears in error messages.
        error: The error for an unknown name.

    >>> letters: Registry[str] = Registry("letter")
    >>> letters.add("alpha.v1", "α")
    'α'
    >>> letters["alpha"], letters.resolve("alpha"), list(letters)
    ('α', 'alpha.v1', ['alpha.v1'])
    """

    def __init__(self, kind: str, error: type[UnknownNameError] = UnknownNameError) -> None:
        self.kind = kind
        self._error = error
        self._items: dict[str, T] = {}
        self._aliases: dict[str, str] = {}

    def add(self, name: str, item: T) -> T:
        """Register ``item`` and return it.

        Raises:
            SpecError: The name is taken.
        """
        if name in self._items:
            raise SpecError(f"the {self.kind} {name!r} is registered twice", name=name)
        self._items[name] = item
        return item

    def alias(self, alias: str, name: str) -> None:
        """Let ``alias`` stand for a registered name; it is not listed.

        Raises:
            SpecError: The alias is taken.
            UnknownNameError: Nothing is registered under ``name``.
        """
        if alias in self:
            raise SpecError(f"the {self.kind} {alias!r} is registered twice", name=alias)
        self._aliases[alias] = self.resolve(name)

    def resolve(self, name: str) -> str:
        """The registered name that ``name`` stands for: itself, its newest version, or an alias's.

        Raises:
            UnknownNameError: Nothing is registered under it.
        """
        if name in self._items:
            return name
        if name in self._aliases:
            return self._aliases[name]
        versions = [found for found in self._items if _without_version(found) == name]
        if not versions:
            raise unknown_name(self.kind, name, self._items, self._error)
        return max(versions, key=_version)

    def __getitem__(self, name: str) -> T:
        return self._items[self.resolve(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, name: object) -> bool:
        # Mapping's own version waits for a KeyError, which ours is not.
        known = (*self._items, *self._aliases, *map(_without_version, self._items))
        return name in known


_VERSION: Final = re.compile(r"\.v([0-9]+)$")


def _without_version(name: str) -> str:
    return _VERSION.sub("", name)


def _version(name: str) -> int:
    found = _VERSION.search(name)
    return int(found[1]) if found else 0


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
