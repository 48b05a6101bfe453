"""Task heads by name: from an encoder's states to predictions and the task's loss.

To add one, write its module beside these, under the name of its task (`trainer.tasks`).
"""

from trainer.models.heads.base import HEADS, Head
from trainer.models.heads.sequence_classification import SequenceClassificationHead

HEADS.add("sequence_classification.v1", SequenceClassificationHead)

__all__ = ["HEADS", "Head", "SequenceClassificationHead"]
