"""Options of a stock encoder that nothing is added to."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.options.model import ModelOptions


@dataclass(frozen=True, slots=True)
class StockOptions(ModelOptions):
    """A stock encoder as it is; it has no options of its own."""

    name: str = "stock.v1"
