"""The registry of objectives; nothing here imports torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from syntax.registry import Registry
from trainer.options.objective import ObjectiveOptions
from trainer.switches import Switch


@dataclass(frozen=True, slots=True)
class ObjectiveEntry:
    """An objective; its module is imported when it is used, so recipes are listed without torch."""

    options: type[ObjectiveOptions]
    module: str
    switches: tuple[Switch, ...] = ()


OBJECTIVES: Final[Registry[ObjectiveEntry]] = Registry("objective")
