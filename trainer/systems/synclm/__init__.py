"""SynCLM: contrasts of phrases and of trees beside masked pieces (Zhang et al. 2022).

Trees come from the objectives ``phrase.v1`` and ``tree.v1`` over a stock encoder as it is.
"""

from trainer.options.model import StockOptions
from trainer.systems.base import SYSTEMS, System

SYSTEMS.add(
    "stock.v1",
    System(
        options=StockOptions,
        encoder="trainer.nn.encoder:StockEncoder",
        recipes="trainer.systems.synclm.recipes",
    ),
)
