"""Where a published system and its released code differ.

A paper and its code rarely agree in every line. Each such place is one switch with two settings, so
that both can be trained and compared. Plain faults of a release have no switch; the guides in
docs/systems list them. A system lists its switches where it is registered (`trainer.systems`).
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


def switches() -> dict[str, tuple[Switch, ...]]:
    """The switches of each system and task that has some, by its name."""
    from trainer.systems import SYSTEMS

    systems = {name: system.switches for name, system in SYSTEMS.items() if system.switches}
    return {
        **systems,
        "intent_slots.v1": TAGGING,
        "relation.v1": RELATION,
        "token_classification.v1": TAGGING,
    }
