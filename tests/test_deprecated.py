"""Modules that have moved are still imported under their old names, with a warning."""

from __future__ import annotations

import re
import sys
from importlib import import_module

import pytest

MOVED = [
    ("syntax.assembly", "syntax.batches", "assemble_batch"),
    ("syntax.ud", "syntax.trees.ud", "upos_id"),
    ("featurestore.evict", "featurestore.maintenance.evict", "evict_parses"),
    ("featurestore.delete", "featurestore.maintenance.delete", "delete_parses"),
    ("trainer.derive", "trainer.matrices.derive", "with_matrices"),
    ("trainer.words", "trainer.systems.frozen.words", "word_arrays"),
    ("clients.results", "clients.client.results", "ParseResult"),
    ("clients.retries", "clients.client.retries", "Retries"),
]


@pytest.mark.parametrize(("old", "new", "name"), MOVED)
def test_an_old_module_warns_and_has_the_names_of_the_new_one(old, new, name) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(
        DeprecationWarning, match=re.escape(f"{old} has moved; import {new}")
    ) as told:
        module = import_module(old)
    assert getattr(module, name) is getattr(import_module(new), name)
    with pytest.raises(AttributeError, match=f"module '{old}' has no attribute 'nothing'"):
        _ = module.nothing
    assert len(told) == 1


def test_the_warning_names_the_line_that_imports() -> None:
    sys.modules.pop("syntax.ud", None)
    with pytest.warns(DeprecationWarning, match="syntax.ud has moved") as told:
        from syntax.ud import upos_id  # noqa: F401
    assert told[0].filename == __file__
