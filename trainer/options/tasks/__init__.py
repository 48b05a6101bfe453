"""Options of each task, by the task's name; importing this registers all of them."""

from trainer.options.tasks.base import TASK_OPTIONS, TaskOptions
from trainer.options.tasks.sequence_classification import SequenceClassificationOptions

__all__ = ["TASK_OPTIONS", "SequenceClassificationOptions", "TaskOptions"]
