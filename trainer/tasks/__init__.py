"""What models predict, by name; importing this registers every task."""

from trainer.tasks.base import (
    TASKS,
    Arrays,
    Baseline,
    Head,
    Scorer,
    Scores,
    Task,
    TaskEntry,
)
from trainer.tasks.clm import Clm, ClmOptions
from trainer.tasks.denoising import Denoising, DenoisingOptions
from trainer.tasks.dependency import Dependency, DependencyOptions
from trainer.tasks.extractive_qa import ExtractiveQa, ExtractiveQaOptions
from trainer.tasks.graph_parser import GraphParserOptions
from trainer.tasks.intent_slots import IntentSlots, IntentSlotsOptions
from trainer.tasks.mlm import Mlm, MlmOptions
from trainer.tasks.multiple_choice import MultipleChoice, MultipleChoiceOptions
from trainer.tasks.relation import Relation, RelationOptions
from trainer.tasks.sequence_classification import (
    SequenceClassification,
    SequenceClassificationOptions,
)
from trainer.tasks.stack_parser import StackParserOptions
from trainer.tasks.structural_probe import StructuralProbe, StructuralProbeOptions
from trainer.tasks.token_classification import TokenClassification, TokenClassificationOptions
from trainer.tasks.translation import Translation, TranslationOptions
from trainer.tasks.trees import Trees, TreesOptions
from trainer.tasks.usl import Usl, UslOptions

__all__ = [
    "TASKS",
    "Arrays",
    "Baseline",
    "Clm",
    "ClmOptions",
    "Denoising",
    "DenoisingOptions",
    "Dependency",
    "DependencyOptions",
    "ExtractiveQa",
    "ExtractiveQaOptions",
    "GraphParserOptions",
    "Head",
    "IntentSlots",
    "IntentSlotsOptions",
    "Mlm",
    "MlmOptions",
    "MultipleChoice",
    "MultipleChoiceOptions",
    "Relation",
    "RelationOptions",
    "Scorer",
    "Scores",
    "SequenceClassification",
    "SequenceClassificationOptions",
    "StackParserOptions",
    "StructuralProbe",
    "StructuralProbeOptions",
    "Task",
    "TaskEntry",
    "TokenClassification",
    "TokenClassificationOptions",
    "Translation",
    "TranslationOptions",
    "Trees",
    "TreesOptions",
    "Usl",
    "UslOptions",
]
