"""Where a published system and its released code differ.

A paper and its code rarely agree in every line. Each such place is one switch with two settings, so
that both can be trained and compared. Plain faults of a release have no switch; the guides in
docs/systems list them. Systems (`trainer.systems`) and tasks (`trainer.tasks`) list their switches
where they are registered.
"""

from __future__ import annotations

from dataclasses import dataclass


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
