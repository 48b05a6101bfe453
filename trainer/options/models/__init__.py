"""Options of each model, by the model's name; importing this registers all of them."""

from trainer.options.models.base import MODEL_OPTIONS, ModelOptions
from trainer.options.models.frozen import FrozenOptions
from trainer.options.models.gate import GateOptions
from trainer.options.models.sgnet import SgNetOptions
from trainer.options.models.sla import SlaOptions
from trainer.options.models.syntax_bert import SyntaxBertOptions, SyntaxGatOptions

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
