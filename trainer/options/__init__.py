"""What a run is told: its sections, each a frozen dataclass that serialises.

Nothing here imports torch, so that recipes can be listed and described at once. Models and tasks
have options of their own; the name in their section says whose.
"""

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

__all__ = [
    "MAIN",
    "MODEL_OPTIONS",
    "OBJECTIVE_OPTIONS",
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
    "TreesOptions",
]
