"""Syntax-BERT (Bai et al. 2021, EACL): sub-networks through masks of parents, children, siblings.

Its name here tells it from ``syntax_bert.v1``, which is syntax-augmented mBERT.
"""

from syntax.variant import Switch
from trainer.systems.base import SYSTEMS, System
from trainer.systems.syntax_masks.options import SyntaxMasksOptions

AGGREGATION = Switch(
    "model.aggregation",
    "topical attention weighs the sub-networks of a layer",
    "their sum is divided by the root of their number",
)
_HERE = "trainer.systems.syntax_masks"
SYSTEMS.add(
    "syntax_masks.v1",
    System(
        SyntaxMasksOptions,
        f"{_HERE}.encoder:SyntaxMasksEncoder",
        f"{_HERE}.recipes",
        (AGGREGATION,),
    ),
)
