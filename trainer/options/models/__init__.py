"""Options of each model, by the model's name; importing this registers all of them."""

from trainer.options.model import MODEL_OPTIONS, ModelOptions
from trainer.systems.frozen.options import FrozenOptions
from trainer.systems.gate.options import GateOptions
from trainer.systems.sgnet.options import SgNetOptions
from trainer.systems.sla.options import SlaOptions
from trainer.systems.syntax_mbert.options import SyntaxBertOptions, SyntaxGatOptions

__all__ = [
    "MODEL_OPTIONS",
    "FrozenOptions",
    "GateOptions",
    "ModelOptions",
    "SgNetOptions",
    "SlaOptions",
    "SyntaxBertOptions",
    "SyntaxGatOptions",
]
