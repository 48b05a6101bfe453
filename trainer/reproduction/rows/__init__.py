"""The rows, in the order of the page; each module registers its own."""

from trainer.reproduction.row import ROWS
from trainer.reproduction.rows import transfer, wolof, word_order

__all__ = ["ROWS", "transfer", "wolof", "word_order"]
