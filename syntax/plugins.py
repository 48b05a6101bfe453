"""Plugins: modules of other distributions that register parsers, matrices, readers and the like.

A distribution names a module under the entry-point group of a kind, such as ``parsebank.matrix``;
a registry imports the modules of its group when it is first read, so that a parser process does
not import the torch of others. ``parsebank --import MODULE`` names further modules; it keeps them
in `VARIABLE`, which worker processes inherit.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from threading import RLock
from typing import Any, Final

from syntax.errors import ParsebankError, SpecError

VARIABLE: Final = "PARSEBANK_IMPORT"
"""Environment variable with the modules of ``--import``, separated by commas."""

_LOG: Final = logging.getLogger(__name__)
_LOCK: Final = RLock()
_failures: dict[str, ParsebankError] = {}
_imported: set[str] = set()
_loaded_from: dict[str, str] = {}
_loading: list[str] = []


class PluginError(SpecError):
    """A plugin cannot be imported."""


class DuplicateNameError(SpecError):
    """Two modules register one name, so it is not certain what the name means."""


def load_plugins(group: str) -> None:
    """Import the modules of ``--import``, and those that distributions name under a group.

    A broken plugin of a distribution is logged as a warning; any other, and a taken name, raise.
    """
    with _LOCK:
        for name in named_modules():
            _import(name, f"the module {name!r} of --import")
            if error := _failures.get(name):
                raise error
        for entry in _plugins(group):
            is_new = entry.module not in _failures
            _import(entry.module, described(entry))
            error = _failures.get(entry.module)
            if isinstance(error, DuplicateNameError):
                raise error
            if error is None and entry.dist:
                _loaded_from[entry.dist.name] = entry.dist.version
            elif error and is_new:
                _LOG.warning("%s", error)


def named_modules() -> list[str]:
    names = (name.strip() for name in os.environ.get(VARIABLE, "").split(","))
    return list(dict.fromkeys(name for name in names if name))


def described(entry: EntryPoint) -> str:
    found = entry.dist
    owner = f"{found.name} {found.version}" if found else "an unknown distribution"
    return f"the plugin {entry.name!r} of {owner}"


def failures(group: str) -> list[str]:
    modules = dict.fromkeys(entry.module for entry in _plugins(group))
    return [_failures[module].message for module in modules if module in _failures]


def loading() -> str | None:
    return _loading[-1] if _loading else None


def versions() -> dict[str, str]:
    return dict(sorted(_loaded_from.items()))


def _import(module: str, plugin: str) -> None:
    if module in _failures or module in _imported:
        return
    with _named(plugin):
        try:
            import_module(module)
        except DuplicateNameError as error:
            _failures[module] = error
        except Exception as error:  # whatever a foreign module raises must not stop the others
            _failures[module] = PluginError(
                f"{plugin} cannot be imported: {type(error).__name__}: {error}; repair or remove it"
            )
        else:
            _imported.add(module)


@contextmanager
def _named(plugin: str) -> Iterator[None]:
    _loading.append(plugin)
    try:
        yield
    finally:
        _loading.pop()


def _plugins(group: str) -> list[EntryPoint]:
    return sorted(_entry_points().select(group=group), key=described)


@cache
def _entry_points() -> Any:
    """Entry points of every installed distribution; reading them takes 10 ms."""
    return entry_points()
