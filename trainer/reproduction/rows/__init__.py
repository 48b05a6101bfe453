"""The rows, in the order of the page."""

from typing import Final

from syntax.registry import Registry
from trainer.reproduction.row import Row
from trainer.reproduction.rows import (
    adversarial,
    noise,
    own_parsers,
    parse_quality,
    parsers,
    plbart,
    probing,
    probing_pairs,
    releases,
    sla,
    syntax_encoder,
    transfer,
    translation,
    tree_reg,
    udprlm,
    wolof,
    word_order,
)

ROWS: Final[Registry[Row]] = Registry("row")
for _row in (
    *word_order.ROWS,
    adversarial.ROW,
    noise.ROW,
    parsers.ROW,
    parse_quality.ROW,
    own_parsers.ROW,
    plbart.ROW,
    probing.ROW,
    *probing_pairs.ROWS,
    releases.ROW,
    sla.ROW,
    syntax_encoder.ROW,
    *transfer.ROWS,
    translation.ROW,
    tree_reg.ROW,
    udprlm.ROW,
    wolof.ROW,
):
    ROWS.add(_row.name, _row)
