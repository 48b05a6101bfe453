"""What a run is told: its sections, each a frozen dataclass that serialises.

Models and tasks have options of their own; the name in their section says whose. The options of a
task stand in the task's file beside its head, which needs torch: they are imported when they are
first used, so that recipes can be listed without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trainer.options.data import DataOptions, SeparatorEdge
from trainer.options.models import (
    MODEL_OPTIONS,
    FrozenOptions,
    GateOptions,
    ModelOptions,
    SgNetOptions,
    SlaOptions,
    SyntaxBertOptions,
    SyntaxGatOptions,
)
from trainer.options.objective import OBJECTIVE_OPTIONS, ObjectiveOptions
from trainer.options.optimizer import GroupOptions, OptimizerOptions
from trainer.options.recipe import Recipe
from trainer.options.stream import MAIN, StreamOptions
from trainer.options.task import TaskOptions
from trainer.options.training import TrainingOptions

if TYPE_CHECKING:
    from trainer.tasks import (
        ExtractiveQaOptions,
        IntentSlotsOptions,
        MultipleChoiceOptions,
        RelationOptions,
        SequenceClassificationOptions,
        StructuralProbeOptions,
        TokenClassificationOptions,
        TreesOptions,
    )

__all__ = [
    "MAIN",
    "MODEL_OPTIONS",
    "OBJECTIVE_OPTIONS",
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
    "TreesOptions",
]

_OF_TASKS = (
    *("ExtractiveQaOptions", "IntentSlotsOptions", "MultipleChoiceOptions", "RelationOptions"),
    *("SequenceClassificationOptions", "StructuralProbeOptions", "TokenClassificationOptions"),
    "TreesOptions",
)


def __getattr__(name: str) -> Any:
    if name in _OF_TASKS:
        return getattr(import_module("trainer.tasks"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
