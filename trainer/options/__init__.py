"""Sections of a run, each a frozen dataclass that serialises; nothing here imports torch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from trainer.objectives.adversary_options import AdversaryOptions
    from trainer.objectives.options import (
        DependencyObjectiveOptions,
        MlmObjectiveOptions,
        PhraseContrastOptions,
        TreeContrastOptions,
        TreeDepthOptions,
        TreeDistanceOptions,
        UposTaggingOptions,
        XposTaggingOptions,
    )
    from trainer.objectives.shown_options import (
        ParseHeadOptions,
        TreePlantingOptions,
        TreeRegOptions,
    )
    from trainer.options.data import DataOptions, SeparatorEdge
    from trainer.options.entries import MAIN, GroupOptions, OptimizerOptions, StreamOptions
    from trainer.options.model import ModelOptions, StockOptions
    from trainer.options.objective import ObjectiveOptions
    from trainer.options.parser import ParserOptions
    from trainer.options.recipe import Recipe
    from trainer.options.task import TaskOptions
    from trainer.options.training import TrainingOptions
    from trainer.systems.blocking.options import BlockingOptions
    from trainer.systems.frozen.options import FrozenOptions
    from trainer.systems.gate.options import GateOptions
    from trainer.systems.lisa.options import LisaOptions
    from trainer.systems.microbert.options import MicroBertOptions
    from trainer.systems.orderfree.options import OrderFreeOptions
    from trainer.systems.pascal.options import PascalOptions
    from trainer.systems.plbart.options import PlbartOptions
    from trainer.systems.sgnet.options import SgNetOptions, SgNetTransformerOptions
    from trainer.systems.sla.options import SlaOptions
    from trainer.systems.syntax_masks.options import SyntaxMasksOptions
    from trainer.systems.syntax_mbert.options import SyntaxBertOptions, SyntaxGatOptions
    from trainer.systems.transformer.options import TransformerOptions
    from trainer.systems.udprlm.options import UdPrlmOptions
    from trainer.tasks.options import (
        ClmOptions,
        ConstituencyOptions,
        DenoisingOptions,
        DependencyOptions,
        ExtractiveQaOptions,
        GraphParserOptions,
        IntentSlotsOptions,
        MlmOptions,
        MultipleChoiceOptions,
        RelationOptions,
        SequenceClassificationOptions,
        StackParserOptions,
        StructuralProbeOptions,
        TokenClassificationOptions,
        TranslationOptions,
        TreesOptions,
        UslOptions,
    )

__all__ = [
    "MAIN",
    "AdversaryOptions",
    "BlockingOptions",
    "ClmOptions",
    "ConstituencyOptions",
    "DataOptions",
    "DenoisingOptions",
    "DependencyObjectiveOptions",
    "DependencyOptions",
    "ExtractiveQaOptions",
    "FrozenOptions",
    "GateOptions",
    "GraphParserOptions",
    "GroupOptions",
    "IntentSlotsOptions",
    "LisaOptions",
    "MicroBertOptions",
    "MlmObjectiveOptions",
    "MlmOptions",
    "ModelOptions",
    "MultipleChoiceOptions",
    "ObjectiveOptions",
    "OptimizerOptions",
    "OrderFreeOptions",
    "ParseHeadOptions",
    "ParserOptions",
    "PascalOptions",
    "PhraseContrastOptions",
    "PlbartOptions",
    "Recipe",
    "RelationOptions",
    "SeparatorEdge",
    "SequenceClassificationOptions",
    "SgNetOptions",
    "SgNetTransformerOptions",
    "SlaOptions",
    "StackParserOptions",
    "StockOptions",
    "StreamOptions",
    "StructuralProbeOptions",
    "SyntaxBertOptions",
    "SyntaxGatOptions",
    "SyntaxMasksOptions",
    "TaskOptions",
    "TokenClassificationOptions",
    "TrainingOptions",
    "TransformerOptions",
    "TranslationOptions",
    "TreeContrastOptions",
    "TreeDepthOptions",
    "TreeDistanceOptions",
    "TreePlantingOptions",
    "TreeRegOptions",
    "TreesOptions",
    "UdPrlmOptions",
    "UposTaggingOptions",
    "UslOptions",
    "XposTaggingOptions",
]

_HOMES: Final = {
    "trainer.objectives.adversary_options": ("AdversaryOptions",),
    "trainer.objectives.options": (
        *("DependencyObjectiveOptions", "MlmObjectiveOptions", "PhraseContrastOptions"),
        *("TreeContrastOptions", "TreeDepthOptions", "TreeDistanceOptions"),
        *("UposTaggingOptions", "XposTaggingOptions"),
    ),
    "trainer.objectives.shown_options": (
        "ParseHeadOptions",
        "TreePlantingOptions",
        "TreeRegOptions",
    ),
    "trainer.options.data": ("DataOptions", "SeparatorEdge"),
    "trainer.options.entries": ("MAIN", "GroupOptions", "OptimizerOptions", "StreamOptions"),
    "trainer.options.model": ("ModelOptions", "StockOptions"),
    "trainer.options.objective": ("ObjectiveOptions",),
    "trainer.options.parser": ("ParserOptions",),
    "trainer.options.recipe": ("Recipe",),
    "trainer.options.task": ("TaskOptions",),
    "trainer.options.training": ("TrainingOptions",),
    "trainer.systems.blocking.options": ("BlockingOptions",),
    "trainer.systems.frozen.options": ("FrozenOptions",),
    "trainer.systems.gate.options": ("GateOptions",),
    "trainer.systems.lisa.options": ("LisaOptions",),
    "trainer.systems.microbert.options": ("MicroBertOptions",),
    "trainer.systems.orderfree.options": ("OrderFreeOptions",),
    "trainer.systems.pascal.options": ("PascalOptions",),
    "trainer.systems.plbart.options": ("PlbartOptions",),
    "trainer.systems.sgnet.options": ("SgNetOptions", "SgNetTransformerOptions"),
    "trainer.systems.sla.options": ("SlaOptions",),
    "trainer.systems.syntax_masks.options": ("SyntaxMasksOptions",),
    "trainer.systems.syntax_mbert.options": ("SyntaxBertOptions", "SyntaxGatOptions"),
    "trainer.systems.transformer.options": ("TransformerOptions",),
    "trainer.systems.udprlm.options": ("UdPrlmOptions",),
    "trainer.tasks.options": (
        *("ClmOptions", "ConstituencyOptions", "DenoisingOptions", "DependencyOptions"),
        "ExtractiveQaOptions",
        *(
            "GraphParserOptions",
            "IntentSlotsOptions",
            "MlmOptions",
            "MultipleChoiceOptions",
            "RelationOptions",
        ),
        *("SequenceClassificationOptions", "StructuralProbeOptions", "TokenClassificationOptions"),
        *("StackParserOptions", "TranslationOptions", "TreesOptions", "UslOptions"),
    ),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
