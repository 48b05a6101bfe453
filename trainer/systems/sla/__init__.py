"""Syntax-aware local attention (Li et al. 2021, Findings of ACL)."""

from syntax.variant import Switch
from trainer.systems.base import SYSTEMS, System
from trainer.systems.sla.options import SlaOptions

WINDOW = Switch(
    "model.window",
    "a piece sees what is near itself or one of its two neighbours",
    "what is near itself or its left neighbour (lr-sib); special tokens but the first attend to "
    "everything",
)
SWITCHES = (
    WINDOW,
    Switch(
        "model.gate",
        "the gate weighs the global attention",
        "the gate weighs the local attention (the authors' own code)",
    ),
)

SYSTEMS.add(
    "sla.v1",
    System(
        options=SlaOptions,
        encoder="trainer.systems.sla.encoder:SlaEncoder",
        recipes="trainer.systems.sla.recipes",
        switches=SWITCHES,
        relations="trainer.systems.sla.relations:RELATIONS",
    ),
)
