"""Examples in docstrings and guides give what they show."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import pytest

import syntax

MODULES = [module.name for module in pkgutil.walk_packages(syntax.__path__, "syntax.")]


@pytest.mark.filterwarnings("ignore:the module syntax:DeprecationWarning")
@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_hold(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0
