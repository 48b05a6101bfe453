"""PLBART (Ahmad et al. 2021, NAACL, https://arxiv.org/abs/2103.06333), which reads no syntax."""

from trainer.systems.base import SYSTEMS, System
from trainer.systems.plbart.options import PlbartOptions

SYSTEMS.add(
    "plbart.v1",
    System(
        options=PlbartOptions,
        encoder="trainer.systems.plbart.encoder:PlbartEncoder",
        recipes="trainer.systems.plbart.recipes",
    ),
)
