"""What models predict, by name."""

from trainer.tasks.base import TASKS, Arrays, Scorer, Scores, Task
from trainer.tasks.extractive_qa import ExtractiveQa
from trainer.tasks.intent_slots import IntentSlots
from trainer.tasks.multiple_choice import MultipleChoice
from trainer.tasks.relation import Relation
from trainer.tasks.sequence_classification import SequenceClassification
from trainer.tasks.structural_probe import StructuralProbe
from trainer.tasks.token_classification import TokenClassification
from trainer.tasks.trees import Trees

TASKS.add("extractive_qa.v1", ExtractiveQa)
TASKS.add("intent_slots.v1", IntentSlots)
TASKS.add("multiple_choice.v1", MultipleChoice)
TASKS.add("relation.v1", Relation)
TASKS.add("sequence_classification.v1", SequenceClassification)
TASKS.add("structural_probe.v1", StructuralProbe)
TASKS.add("token_classification.v1", TokenClassification)
TASKS.add("trees.v1", Trees)

__all__ = [
    "TASKS",
    "Arrays",
    "ExtractiveQa",
    "IntentSlots",
    "MultipleChoice",
    "Relation",
    "Scorer",
    "Scores",
    "SequenceClassification",
    "StructuralProbe",
    "Task",
    "TokenClassification",
    "Trees",
]
