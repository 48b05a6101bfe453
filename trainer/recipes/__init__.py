"""Runs by name: functions that return a `trainer.options.Recipe`; a system's are in its folder."""

from importlib import import_module

from syntax.variant import Switch
from trainer.objectives import OBJECTIVES
from trainer.recipes import adversarial, parsing, pronto, sample, trees
from trainer.recipes.base import RECIPES
from trainer.systems import SYSTEMS
from trainer.tasks import TASKS

for _system in SYSTEMS.values():
    import_module(_system.recipes)

__all__ = ["RECIPES", "adversarial", "parsing", "pronto", "sample", "switches", "trees"]


def switches() -> dict[str, tuple[Switch, ...]]:
    """Every place where a paper and its released code differ, by system, task or objective."""
    found = {name: system.switches for name, system in SYSTEMS.items()}
    found |= {name: task.switches for name, task in TASKS.items()}
    for name, objective in OBJECTIVES.items():  # a task may have the same name
        found[name] = (*found.get(name, ()), *objective.switches)
    return {name: own for name, own in found.items() if own}
