"""What a run is told: its sections, each a frozen dataclass that serialises.

Nothing here imports torch, so that recipes can be listed and described at once. The options of
systems, tasks and objectives lie in their own folders, which import what all options share from the
modules here. The names below are therefore imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from trainer.objectives.options import TreeDepthOptions, TreeDistanceOptions
    from trainer.options.data import DataOptions, SeparatorEdge
    from trainer.options.model import ModelOptions
    from trainer.options.objective import ObjectiveOptions
    from trainer.options.optimizer import GroupOptions, OptimizerOptions
    from trainer.options.recipe import Recipe
    from trainer.options.stream import MAIN, StreamOptions
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
    "MAIN",
    "TASK_OPTIONS",
    "DataOptions",
    "ExtractiveQaOptions",
    "FrozenOptions",
    "GateOptions",
    "GroupOptions",
    "IntentSlotsOptions",
    "ModelOptions",
    "MultipleChoiceOptions",
    "ObjectiveOptions",
    "OptimizerOptions",
    "Recipe",
    "RelationOptions",
    "SeparatorEdge",
    "SequenceClassificationOptions",
    "SgNetOptions",
    "SlaOptions",
    "StreamOptions",
    "StructuralProbeOptions",
    "SyntaxBertOptions",
    "SyntaxGatOptions",
    "TaskOptions",
    "TokenClassificationOptions",
    "TrainingOptions",
    "TreeDepthOptions",
    "TreeDistanceOptions",
    "TreesOptions",
]

_HOMES: Final = {
    "trainer.objectives.options": ("TreeDepthOptions", "TreeDistanceOptions"),
    "trainer.options.data": ("DataOptions", "SeparatorEdge"),
    "trainer.options.model": ("ModelOptions",),
    "trainer.options.objective": ("ObjectiveOptions",),
    "trainer.options.optimizer": ("GroupOptions", "OptimizerOptions"),
    "trainer.options.recipe": ("Recipe",),
    "trainer.options.stream": ("MAIN", "StreamOptions"),
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
"""The names above by the module that defines them."""


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
