"""MicroBERT, pre-trained with syntax (Gessler and Schneider 2023)."""

from syntax.variant import Switch
from trainer.systems.base import SYSTEMS, System
from trainer.systems.microbert.options import MicroBertOptions
from trainer.systems.sla import WINDOW

SWITCHES = (
    WINDOW,
    Switch(
        "model.gate",
        "the gate weighs the global attention",
        "the gate weighs the local attention (the code of local attention that lr-sib is built on)",
    ),
)

SYSTEMS.add(
    "microbert.v1",
    System(
        options=MicroBertOptions,
        encoder="trainer.systems.sla.encoder:SlaEncoder",
        recipes="trainer.systems.microbert.recipes",
        switches=SWITCHES,
    ),
)
