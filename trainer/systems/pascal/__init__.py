"""Parent-scaled self-attention, PASCAL (Bugliarello and Okazaki 2020)."""

from syntax.variant import Switch
from trainer.systems.base import SYSTEMS, System
from trainer.systems.pascal.options import PascalOptions

SWITCHES = (
    Switch(
        "model.scaled",
        "the syntactic heads of every example are scaled, by its own parents",
        "all heads of the last examples of a batch are, by parents of other examples, because the "
        "code takes the last rows of heads and examples in the wrong order",
    ),
)

SYSTEMS.add(
    "pascal.v1",
    System(
        options=PascalOptions,
        encoder="trainer.systems.pascal.encoder:PascalEncoder",
        recipes="trainer.systems.pascal.recipes",
        switches=SWITCHES,
    ),
)
