"""What models predict, by name."""

from trainer.tasks.base import TASKS, Scorer, Scores, Task
from trainer.tasks.sequence_classification import SequenceClassification

TASKS.add("sequence_classification.v1", SequenceClassification)

__all__ = ["TASKS", "Scorer", "Scores", "SequenceClassification", "Task"]
