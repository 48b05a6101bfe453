"""Encoders by name: what each published system makes of a stock encoder and a tree.

To add one, write its module beside these and its options in `trainer.options.models`, under the
same versioned name; docs/extend/model.md walks through it.
"""

from trainer.systems.base import ENCODERS, Encoder, ReachesIntoAttention
from trainer.systems.frozen.encoder import FrozenEncoder
from trainer.systems.gate.encoder import GateEncoder
from trainer.systems.sgnet.encoder import SgNetEncoder
from trainer.systems.sla.encoder import SlaEncoder
from trainer.systems.syntax_mbert.encoder import SyntaxBertEncoder
from trainer.systems.syntax_mbert.graph_encoder import SyntaxGatEncoder

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
