"""Task heads by name: from an encoder's states to predictions and the task's loss.

To add one, write its module beside these, under the name of its task (`trainer.tasks`).
"""

from trainer.models.heads.base import HEADS, Head
from trainer.models.heads.extractive_qa import ExtractiveQaHead
from trainer.models.heads.intent_slots import IntentSlotsHead
from trainer.models.heads.multiple_choice import MultipleChoiceHead
from trainer.models.heads.relation import RelationHead
from trainer.models.heads.sequence_classification import SequenceClassificationHead
from trainer.models.heads.structural_probe import StructuralProbeHead
from trainer.models.heads.token_classification import TokenClassificationHead
from trainer.models.heads.trees import TreesHead

HEADS.add("extractive_qa.v1", ExtractiveQaHead)
HEADS.add("intent_slots.v1", IntentSlotsHead)
HEADS.add("multiple_choice.v1", MultipleChoiceHead)
HEADS.add("relation.v1", RelationHead)
HEADS.add("sequence_classification.v1", SequenceClassificationHead)
HEADS.add("structural_probe.v1", StructuralProbeHead)
HEADS.add("token_classification.v1", TokenClassificationHead)
HEADS.add("trees.v1", TreesHead)

__all__ = [
    "HEADS",
    "ExtractiveQaHead",
    "Head",
    "IntentSlotsHead",
    "MultipleChoiceHead",
    "RelationHead",
    "SequenceClassificationHead",
    "StructuralProbeHead",
    "TokenClassificationHead",
    "TreesHead",
]
