"""Linguistically-informed self-attention, LISA (Strubell et al. 2018, EMNLP)."""

from trainer.systems.base import SYSTEMS, System
from trainer.systems.lisa.options import LisaOptions

_HERE = "trainer.systems.lisa"
SYSTEMS.add("lisa.v1", System(LisaOptions, f"{_HERE}.encoder:LisaEncoder", f"{_HERE}.recipes"))
