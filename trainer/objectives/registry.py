"""The registry of objectives; nothing here imports torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from syntax.registry import Registry
from trainer.options.objective import ObjectiveOptions
from trainer.switches import Switch


@dataclass(frozen=True, slots=True)
class ObjectiveEntry:
    """An objective in the registry.

    Attributes:
        options: Its options; their ``name`` is the key.
        module: Its `trainer.objectives.base.Objective` as ``module:name``, which is imported when
            it is used, so that recipes can be listed without torch.
        switches: Where papers and their released code differ.
    """

    options: type[ObjectiveOptions]
    module: str
    switches: tuple[Switch, ...] = ()


OBJECTIVES: Final[Registry[ObjectiveEntry]] = Registry("objective")
"""Every objective by its name."""
