"""Attention blocked by tree distance (Ahmad et al. 2021, section 4.3, on Syntax-MBERT)."""

from trainer.systems.base import SYSTEMS, System
from trainer.systems.blocking.options import BlockingOptions

SYSTEMS.add(
    "blocking.v1",
    System(
        options=BlockingOptions,
        encoder="trainer.systems.blocking.encoder:BlockingEncoder",
        recipes="trainer.systems.blocking.recipes",
    ),
)
