"""Runs of blocked attention, on the data and with the training of Syntax-MBERT's recipes.

Deltas are those of Ahmad et al. 2021, table 4; that these two tasks are trained is our own choice.
Pieces of a word stand where it does (``policy=broadcast``), so that distances are those of words.
"""

from __future__ import annotations

from dataclasses import replace

from trainer.options import BlockingOptions, Recipe
from trainer.recipes.base import RECIPES
from trainer.systems.syntax_mbert import recipes as syntax_mbert


def pawsx() -> Recipe:
    """PAWS-X from English, with every head of mBERT blocked beyond 4 edges."""
    return _blocked(syntax_mbert.pawsx(), 4)


def wikiann() -> Recipe:
    """WikiAnn from English, with every head of mBERT blocked beyond 1 edge."""
    return _blocked(syntax_mbert.wikiann(), 1)


def _blocked(recipe: Recipe, max_distance: int) -> Recipe:
    return replace(
        recipe,
        name=f"blocking-{recipe.name}",
        data=replace(recipe.data, policy="broadcast"),
        model=BlockingOptions(max_distance=max_distance),
        objectives=(),
    )


RECIPES.add("blocking-pawsx", pawsx)
RECIPES.add("blocking-wikiann", wikiann)
