"""Options of relation extraction and event-argument role labelling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from syntax.variant import Variant, check_variant
from trainer.options.task import TASK_OPTIONS, TaskOptions

MENTION_IDS: Final = 2
"""Ids of a position's mention before the types' own: outside, and inside one without a type."""

TAG_IDS: Final = 1
"""Ids of a position's tag before the tags' own: none."""


@dataclass(frozen=True, slots=True)
class RelationOptions(TaskOptions):
    """The class of two given mentions: a relation, or the role that an argument has of an event.

    Attributes:
        label: The label column, of kind ``class``.
        subject, object: The label columns of the mentions, of kind ``spans``.
        tags: A label column of kind ``tags`` that models may read, such as named entities; none
            when left out.
        null: The class that stands for none, which scores leave out.
        empty_precision: A switch: precision where nothing but ``null`` is predicted.
        classifier: A switch: the layers over the text and the two mentions.
    """

    name: str = "relation.v1"
    label: str = "relation"
    subject: str = "subject"
    object: str = "object"
    tags: str | None = "ner"
    null: str = "no_relation"
    empty_precision: Variant = "as_published"
    classifier: Variant = "as_published"

    def __post_init__(self) -> None:
        check_variant("task.empty_precision", self.empty_precision)
        check_variant("task.classifier", self.classifier)

    def columns(self) -> tuple[str, ...]:
        """All columns."""
        return (self.label, *self.given())

    def given(self) -> tuple[str, ...]:
        """The mentions, and the tags if there are any."""
        return (*self.spans(), *([self.tags] if self.tags else []))

    def spans(self) -> tuple[str, ...]:
        """The mentions."""
        return (self.subject, self.object)


TASK_OPTIONS.add("relation.v1", RelationOptions)
