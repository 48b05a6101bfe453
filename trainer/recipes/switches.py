"""Every place where a paper and its released code differ."""

from __future__ import annotations

from trainer.switches import Switch
from trainer.systems import SYSTEMS
from trainer.tasks import TASKS


def switches() -> dict[str, tuple[Switch, ...]]:
    """The switches of each system and task that has some, by its name."""
    found = {name: system.switches for name, system in SYSTEMS.items()}
    found |= {name: task.switches for name, task in TASKS.items()}
    return {name: own for name, own in found.items() if own}
