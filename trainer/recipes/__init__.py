"""Runs by name: each recipe is a function that returns a `trainer.options.Recipe`.

To add one, write the function in a module here, add it to `RECIPES`, and import the module below.
"""

from trainer.recipes import gate, graph, probe, sample, sgnet, sla, syntax_mbert
from trainer.recipes.base import RECIPES

__all__ = ["RECIPES", "gate", "graph", "probe", "sample", "sgnet", "sla", "syntax_mbert"]
