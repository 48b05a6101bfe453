"""Examples in docstrings and guides give what they show."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import syntax
from syntax.matrices import COMPILED, MATRICES

ROOT = Path(__file__).parents[2]
MODULES = [module.name for module in pkgutil.walk_packages(syntax.__path__, "syntax.")]


@pytest.mark.filterwarnings("ignore:the module syntax:DeprecationWarning")
@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(import_module(name)).failed == 0


def test_examples_of_the_guide_to_relations() -> None:
    result = doctest.testfile(str(ROOT / "docs" / "derived.md"), module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0


@pytest.mark.parametrize("name", [name.removesuffix(".v1") for name in MATRICES])
def test_every_matrix_is_documented(name: str) -> None:
    where, shown = ("store.md", f'"{name}"') if name in COMPILED else ("derived.md", f"`{name}`")
    assert shown in (ROOT / "docs" / where).read_text(encoding="utf-8")
