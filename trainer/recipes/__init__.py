"""Runs by name: each recipe is a function that returns a `trainer.options.Recipe`.

The recipes of a system are in its folder (``trainer/systems/<system>/recipes.py``), which registers
them in `RECIPES`.
"""

from importlib import import_module

from trainer.recipes import adversarial, parsing, pronto, sample
from trainer.recipes.base import RECIPES
from trainer.systems import SYSTEMS

for _system in SYSTEMS.values():
    import_module(_system.recipes)

__all__ = ["RECIPES", "adversarial", "parsing", "pronto", "sample"]
