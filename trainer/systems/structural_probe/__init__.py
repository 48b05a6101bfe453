"""Structural probes (Hewitt and Manning 2019, https://aclanthology.org/N19-1419)."""

from trainer.systems.base import SYSTEMS, System
from trainer.systems.frozen.options import FrozenOptions

SYSTEMS.add(
    "frozen.v1",
    System(
        options=FrozenOptions,
        encoder="trainer.systems.frozen.encoder:FrozenEncoder",
        recipes="trainer.systems.structural_probe.recipes",
    ),
)
