"""Every place where a paper and its released code differ."""

from __future__ import annotations

from trainer.objectives import OBJECTIVES
from trainer.switches import Switch
from trainer.systems import SYSTEMS
from trainer.tasks import TASKS


def switches() -> dict[str, tuple[Switch, ...]]:
    found = {name: system.switches for name, system in SYSTEMS.items()}
    found |= {name: task.switches for name, task in TASKS.items()}
    for name, objective in OBJECTIVES.items():  # a task may have the same name
        found[name] = (*found.get(name, ()), *objective.switches)
    return {name: own for name, own in found.items() if own}
