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
        "model.masking",
        "the mask multiplies the scores: a masked position has a score of 0, and so a weight",
        "a large negative number is added to masked scores, so that they have no weight",
    ),
    Switch(
        "model.layer",
        "attention, two maps with GELU between, the layer's input added, one LayerNorm",
        "a whole layer of the encoder: attention has an output map, residual and LayerNorm, too",
    ),
    Switch(
        "model.aggregation",
        "the states before and after the syntax-guided layer are mixed in fixed shares",
        "their shares are learned, and so is a factor of the result",
    ),
    Switch(
        "model.specials",
        "special tokens are masked in the aggregation: they keep the encoder's own states",
        "they are mixed as words are",
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
        encoder="trainer.systems.sgnet.encoder:SgNetEncoder",
        recipes="trainer.systems.sgnet.recipes",
    ),
)
