"""Where a published system and its released code differ.

A paper and its code rarely agree in every line. Each such place is one switch with two settings, so
that both can be trained and compared. Plain faults of a release have no switch; the guides in
docs/systems list them. Systems (`trainer.systems`) and tasks (`trainer.tasks`) list their switches
where they are registered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Switch:
    """One place where paper and code differ.

    Attributes:
        option: The recipe option that sets it.
        published, released: What each setting does.
    """

    option: str
    published: str
    released: str


RELATION: Final = (
    Switch(
        "task.empty_precision",
        "precision is 0 where no relation is predicted at all",
        "it is 1",
    ),
    Switch(
        "task.classifier",
        "a hidden layer with dropout, then the classes",
        "two hidden layers without dropout, then the classes",
    ),
)
"""The switches of relations, in the scores and the classifier of GATE's release."""

TAGGING: Final = (
    Switch(
        "task.word_labels",
        "a token that the parser made several words of has its label once: B- goes on as I-",
        "each of its words has the token's label, so that one mention becomes several",
    ),
)
"""The switch of tagging, in the data of Syntax-MBERT's release."""
