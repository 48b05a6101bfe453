"""Runs by name: each recipe is a function that returns a `trainer.options.Recipe`.

To add one, write the function in a module here, add it to `RECIPES`, and import the module below.
"""

from trainer.recipes import probe, sample
from trainer.recipes.base import RECIPES
from trainer.systems.gate import recipes as gate
from trainer.systems.sgnet import recipes as sgnet
from trainer.systems.sla import recipes as sla
from trainer.systems.syntax_mbert import graph_recipes as graph
from trainer.systems.syntax_mbert import recipes as syntax_mbert

__all__ = ["RECIPES", "gate", "graph", "probe", "sample", "sgnet", "sla", "syntax_mbert"]
