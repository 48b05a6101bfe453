"""What a task's head is."""

from __future__ import annotations

from typing import Protocol

from syntax.registry import Registry
from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import HeadOutput, SyntaxEncoding


class Head(Protocol):
    """A torch module that is built from a configuration and the width of the states.

    Args:
        config: ``config.task_options()`` are of the task's own class; ``config.classes`` has the
            classes of each label column.
        width: Of the encoder's states.
    """

    def __init__(self, config: SyntaxConfig, width: int) -> None: ...

    def __call__(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Predictions, and the loss when the batch carries the targets of the task."""
        ...


HEADS: Registry[type[Head]] = Registry("task")
"""Every head by the name of its task."""
