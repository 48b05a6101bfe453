"""Options of each task, by the task's name; importing this registers all of them."""

from trainer.options.task import TASK_OPTIONS, TaskOptions
from trainer.options.tasks.extractive_qa import ExtractiveQaOptions
from trainer.options.tasks.intent_slots import IntentSlotsOptions
from trainer.options.tasks.multiple_choice import MultipleChoiceOptions
from trainer.options.tasks.relation import RelationOptions
from trainer.options.tasks.sequence_classification import SequenceClassificationOptions
from trainer.options.tasks.structural_probe import StructuralProbeOptions
from trainer.options.tasks.token_classification import TokenClassificationOptions
from trainer.options.tasks.trees import TreesOptions

__all__ = [
    "TASK_OPTIONS",
    "ExtractiveQaOptions",
    "IntentSlotsOptions",
    "MultipleChoiceOptions",
    "RelationOptions",
    "SequenceClassificationOptions",
    "StructuralProbeOptions",
    "TaskOptions",
    "TokenClassificationOptions",
    "TreesOptions",
]
