"""What a run is told: its sections, each a frozen dataclass that serialises.

Nothing here imports torch, so that recipes can be listed and described at once. The options of
systems and tasks lie in their own folders, which import what all options share from the modules
here. The names below are therefore imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.options.data import DataOptions, SeparatorEdge
    from trainer.options.model import ModelOptions
    from trainer.options.recipe import Recipe
    from trainer.options.tasks import (
        TASK_OPTIONS,
        ExtractiveQaOptions,
        IntentSlotsOptions,
        MultipleChoiceOptions,
        RelationOptions,
        SequenceClassificationOptions,
        StructuralProbeOptions,
        TaskOptions,
        TokenClassificationOptions,
        TreesOptions,
    )
    from trainer.options.training import TrainingOptions
    from trainer.systems.frozen.options import FrozenOptions
    from trainer.systems.gate.options import GateOptions
    from trainer.systems.sgnet.options import SgNetOptions
    from trainer.systems.sla.options import SlaOptions
    from trainer.systems.syntax_mbert.options import SyntaxBertOptions, SyntaxGatOptions

__all__ = [
    "TASK_OPTIONS",
    "DataOptions",
    "ExtractiveQaOptions",
    "FrozenOptions",
    "GateOptions",
    "IntentSlotsOptions",
    "ModelOptions",
    "MultipleChoiceOptions",
    "Recipe",
    "RelationOptions",
    "SeparatorEdge",
    "SequenceClassificationOptions",
    "SgNetOptions",
    "SlaOptions",
    "StructuralProbeOptions",
    "SyntaxBertOptions",
    "SyntaxGatOptions",
    "TaskOptions",
    "TokenClassificationOptions",
    "TrainingOptions",
    "TreesOptions",
]

_HOMES = {
    "trainer.options.data": ("DataOptions", "SeparatorEdge"),
    "trainer.options.model": ("ModelOptions",),
    "trainer.options.recipe": ("Recipe",),
    "trainer.options.training": ("TrainingOptions",),
    "trainer.systems.frozen.options": ("FrozenOptions",),
    "trainer.systems.gate.options": ("GateOptions",),
    "trainer.systems.sgnet.options": ("SgNetOptions",),
    "trainer.systems.sla.options": ("SlaOptions",),
    "trainer.systems.syntax_mbert.options": ("SyntaxBertOptions", "SyntaxGatOptions"),
    "trainer.options.tasks": (
        *("TASK_OPTIONS", "ExtractiveQaOptions", "IntentSlotsOptions", "MultipleChoiceOptions"),
        *("RelationOptions", "SequenceClassificationOptions", "StructuralProbeOptions"),
        *("TaskOptions", "TokenClassificationOptions", "TreesOptions"),
    ),
}
"""The names of each module."""


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
