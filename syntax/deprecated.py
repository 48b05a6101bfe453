"""Modules under their old names."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any


def moved(old: str, new: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module that has moved; it warns where the module is imported.

    ::

        __getattr__ = moved(__name__, "syntax.batches")

    Args:
        old: Name of the module before.
        new: Name of the module that has its content now.
    """
    warnings.warn(
        f"the module {old} has moved; import {new} instead", DeprecationWarning, stacklevel=3
    )

    def attribute(name: str) -> Any:
        try:
            return getattr(import_module(new), name)
        except AttributeError:
            raise AttributeError(f"module {old!r} has no attribute {name!r}") from None

    return attribute
