"""The rows, in the order of the page; each module registers its own."""

from trainer.reproduction.row import ROWS
from trainer.reproduction.rows import (
    adversarial,
    noise,
    parsers,
    plbart,
    probing,
    releases,
    sla,
    syntax_encoder,
    transfer,
    translation,
    udprlm,
    wolof,
    word_order,
)

__all__ = [
    "ROWS",
    "adversarial",
    "noise",
    "parsers",
    "plbart",
    "probing",
    "releases",
    "sla",
    "syntax_encoder",
    "transfer",
    "translation",
    "udprlm",
    "wolof",
    "word_order",
]
