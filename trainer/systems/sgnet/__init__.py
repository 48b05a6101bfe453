"""SG-Net (Zhang et al. 2020, AAAI, https://arxiv.org/abs/1908.05147)."""

from syntax.variant import Switch
from trainer.systems.base import SYSTEMS, System
from trainer.systems.sgnet.options import SgNetOptions, SgNetTransformerOptions

SWITCHES = (
    Switch(
        "model.mask",
        "a word attends to itself and its ancestors, a special token to itself",
        "a word attends to each word between the first and the last of whose subtree it lies, if "
        "these are two; leaves of one piece and later pieces do not attend to themselves; special "
        "tokens attend to everything",
    ),
    Switch(
        "model.aggregation",
        "the states before and after the syntax-guided layer are mixed in fixed shares",
        "their shares are learned, and so is a factor of the result",
    ),
)

SYSTEMS.add(
    "sgnet.v1",
    System(
        options=SgNetOptions,
        encoder="trainer.systems.sgnet.encoder:SgNetEncoder",
        recipes="trainer.systems.sgnet.recipes",
        switches=SWITCHES,
        relations="trainer.systems.sgnet.relations:RELATIONS",
    ),
)
SYSTEMS.add(
    "sgnet_transformer.v1",
    System(
        options=SgNetTransformerOptions,
        encoder="trainer.systems.sgnet.encoder:SgNetTransformerEncoder",
        recipes="trainer.systems.sgnet.recipes",
    ),
)
