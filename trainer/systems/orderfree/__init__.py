"""The order-free parser (Ahmad et al. 2019, NAACL, https://aclanthology.org/N19-1253)."""

from syntax.variant import Switch
from trainer.systems.base import SYSTEMS, System
from trainer.systems.orderfree.options import OrderFreeOptions

SWITCHES = (
    Switch(
        "model.padding_mask",
        "self-attention sees no padding",
        "it sees the padding up to the width of the sentence's bucket (10, 15, ..., 140)",
    ),
    Switch(
        "model.missing_vector",
        "a word without a vector in its own language has zeros",
        "it has that of the English word that is written alike, if there is one",
    ),
)

SYSTEMS.add(
    "orderfree.v1",
    System(
        options=OrderFreeOptions,
        encoder="trainer.systems.orderfree.encoder:OrderFreeEncoder",
        recipes="trainer.systems.orderfree.recipes",
        switches=SWITCHES,
    ),
)
