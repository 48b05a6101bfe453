"""Runs by name: each recipe is a function that returns a `trainer.recipes.base.Recipe`.

To add one, write the function in a module here, add it to `RECIPES`, and import the module below.
"""

from trainer.recipes import sample, syntax_mbert
from trainer.recipes.base import RECIPES, DataOptions, ModelOptions, Recipe, TrainingOptions

__all__ = [
    "RECIPES",
    "DataOptions",
    "ModelOptions",
    "Recipe",
    "TrainingOptions",
    "sample",
    "syntax_mbert",
]
