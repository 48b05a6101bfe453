"""The Transformer (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762), without syntax."""

from trainer.systems.base import SYSTEMS, System
from trainer.systems.transformer.options import TransformerOptions

SYSTEMS.add(
    "transformer.v1",
    System(
        options=TransformerOptions,
        encoder="trainer.nn.encoder:StockEncoder",
        recipes="trainer.systems.transformer.recipes",
    ),
)
