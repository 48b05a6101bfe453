"""Runs by name: functions that return a `trainer.options.Recipe`; a system's are in its folder."""

from importlib import import_module

from trainer.recipes import adversarial, parsing, pronto, sample, trees
from trainer.recipes.base import RECIPES
from trainer.systems import SYSTEMS

for _system in SYSTEMS.values():
    import_module(_system.recipes)

__all__ = ["RECIPES", "adversarial", "parsing", "pronto", "sample", "trees"]
