"""Masked language modelling with parent-scaled attention, from scratch.

The paper translates; these runs fill masks instead. Heads, layers and parent ignoring are those of
its English to German runs on News Commentary (release, commit 251a9ca). Data, size and training are
those of `trainer.recipes.trees`, our own choice.
"""

from __future__ import annotations

from dataclasses import replace

from trainer import options
from trainer.options import PascalOptions, Recipe
from trainer.recipes.base import RECIPES, variant
from trainer.recipes.trees import clm


def pascal() -> Recipe:
    """Masked language modelling with heads that are scaled around parents, from scratch."""
    return replace(
        clm(),
        name="pascal-mlm",
        model=PascalOptions(encoder="parsebank-micro", weights="random"),
        task=options.MlmOptions(),
    )


def pascal_as_released() -> Recipe:
    """The same, with the heads and examples scaled that the authors' code scales."""
    return variant(pascal(), "as-released", "model.scaled=as_released")


RECIPES.add("pascal-mlm", pascal)
RECIPES.add("pascal-mlm-as-released", pascal_as_released)
