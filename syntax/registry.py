"""One way to name variable parts: parsers, policies, readers, models, tasks."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, TypeVar

from syntax import plugins
from syntax.errors import UnknownNameError

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """Names to implementations, in order of registration; the first reading loads its plugins.

    An item whose behaviour can change has a versioned name; a name without version is the newest.
    Record the full name, from `resolve`, in stored content. ``kind`` names the entry-point group of
    plugins: ``parsebank.subword_policy``.

    >>> letters: Registry[str] = Registry("letter")
    >>> letters.add("alpha.v1", "α")
    'α'
    >>> letters["alpha"], letters.resolve("alpha"), list(letters)
    ('α', 'alpha.v1', ['alpha.v1'])
    """

    def __init__(self, kind: str, error: type[UnknownNameError] = UnknownNameError) -> None:
        self.kind = kind
        self.group = f"parsebank.{kind.replace(' ', '_')}"
        self._error = error
        self._items: dict[str, T] = {}
        self._aliases: dict[str, str] = {}
        self._origins: dict[str, str] = {}
        self._has_plugins = False

    def add(self, name: str, item: T) -> T:
        self._claim(name, name in self._items)
        self._items[name] = item
        return item

    def alias(self, alias: str, name: str) -> None:
        """Let ``alias`` stand for a registered name; it is not listed."""
        self._claim(alias, self._holds(alias))
        self._aliases[alias] = self._resolve(name)

    def resolve(self, name: str) -> str:
        """The registered name for ``name``: itself, its newest version, or an alias's."""
        self._load()
        return self._resolve(name)

    def __getitem__(self, name: str) -> T:
        return self._items[self.resolve(name)]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(self._items)

    def __len__(self) -> int:
        self._load()
        return len(self._items)

    def __contains__(self, name: object) -> bool:
        # Mapping's own version waits for a KeyError, which ours is not.
        self._load()
        return self._holds(name)

    def _resolve(self, name: str) -> str:
        if name in self._items:
            return name
        if name in self._aliases:
            return self._aliases[name]
        versions = [found for found in self._items if _without_version(found) == name]
        if not versions:
            broken = plugins.failures(self.group)
            raise unknown_name(self.kind, name, self._items, self._error, broken)
        return max(versions, key=_version)

    def _holds(self, name: object) -> bool:
        known = (*self._items, *self._aliases, *map(_without_version, self._items))
        return name in known

    def _load(self) -> None:
        if self._has_plugins:
            return
        self._has_plugins = True  # first: a plugin may read the registry that it extends
        try:
            plugins.load_plugins(self.group)
        except BaseException:
            self._has_plugins = False
            raise

    def _claim(self, name: str, is_taken: bool) -> None:
        """Record the module that registers a name, or name the one that has it already."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_locals.get("self") is self:
            frame = frame.f_back
        origin = plugins.loading() or frame.f_globals.get("__name__", "?")
        if is_taken:
            first = self._origins.get(name, "an older version or alias")
            raise plugins.DuplicateNameError(
                f"the {self.kind} {name!r} is registered twice: by {first}, and by {origin}; "
                "give one of them another name",
                name=name,
                by=[first, origin],
            )
        self._origins[name] = origin


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
    broken: Sequence[str] = (),
    remedy: str = "",
) -> UnknownNameError:
    """The error for a name that is not among the known ones, with the nearest one first."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(names) or "none"
    faults = "".join(f" Note: {fault}." for fault in broken)
    advice = f" {remedy}" if remedy else ""
    message = f"unknown {kind} {name!r}.{hint} Known: {listed}.{advice}{faults}"
    return error(message, name=name, known=names)
