"""Runs by name: each recipe is a function that returns a `trainer.options.Recipe`.

To add one, write the function in a module here, add it to `RECIPES`, and import the module below.
"""

from trainer.recipes import graph, sample, sgnet, sla, syntax_mbert
from trainer.recipes.base import RECIPES

__all__ = ["RECIPES", "graph", "sample", "sgnet", "sla", "syntax_mbert"]
