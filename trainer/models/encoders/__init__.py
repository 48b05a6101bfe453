"""Encoders by name: what each published system makes of a stock encoder and a tree.

To add one, write its module beside these and its options in `trainer.options.models`, under the
same versioned name; docs/extend/model.md walks through it.
"""

from trainer.models.encoders.base import ENCODERS, Encoder, ReachesIntoAttention
from trainer.models.encoders.frozen import FrozenEncoder
from trainer.models.encoders.gate import GateEncoder
from trainer.models.encoders.sgnet import SgNetEncoder
from trainer.models.encoders.sla import SlaEncoder
from trainer.models.encoders.syntax_bert import SyntaxBertEncoder
from trainer.models.encoders.syntax_gat import SyntaxGatEncoder

ENCODERS.add("frozen.v1", FrozenEncoder)
ENCODERS.add("gate.v1", GateEncoder)
ENCODERS.add("sgnet.v1", SgNetEncoder)
ENCODERS.add("sla.v1", SlaEncoder)
ENCODERS.add("syntax_bert.v1", SyntaxBertEncoder)
ENCODERS.add("syntax_gat.v1", SyntaxGatEncoder)

__all__ = [
    "ENCODERS",
    "Encoder",
    "FrozenEncoder",
    "GateEncoder",
    "ReachesIntoAttention",
    "SgNetEncoder",
    "SlaEncoder",
    "SyntaxBertEncoder",
    "SyntaxGatEncoder",
]
