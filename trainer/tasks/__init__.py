"""What models predict, by name."""

from trainer.tasks.base import TASKS, Arrays, Scorer, Scores, Task
from trainer.tasks.sequence_classification import SequenceClassification

TASKS.add("sequence_classification.v1", SequenceClassification)

__all__ = ["TASKS", "Arrays", "Scorer", "Scores", "SequenceClassification", "Task"]
