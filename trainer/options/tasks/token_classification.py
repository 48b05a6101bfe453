"""Options of the tagging of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from syntax.variant import Variant
from trainer.options.task import TASK_OPTIONS, TaskOptions


@dataclass(frozen=True, slots=True)
class TokenClassificationOptions(TaskOptions):
    """One class for each token of the dataset; scored on those tokens, whatever the parser cut.

    Attributes:
        label: The label column, of kind ``tags``.
        pieces: Where the model predicts: at the ``first`` piece of a token, or at the first of each
            ``words`` that the parser made of it, of which the first counts in the scores.
        word_labels: A switch: what a token's label becomes on its second word.
        positive: The tag whose tokens F1 and F0.5 are of, where tags spell no entities.
        metric: What models are selected on: F1 or F0.5 of entities, or accuracy of tokens.
    """

    name: str = "token_classification.v1"
    label: str = "tags"
    pieces: Literal["first", "words"] = "first"
    word_labels: Variant = "as_published"
    positive: str | None = None
    metric: Literal["f1", "f05", "accuracy"] = "f1"

    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.label,)


TASK_OPTIONS.add("token_classification.v1", TokenClassificationOptions)
