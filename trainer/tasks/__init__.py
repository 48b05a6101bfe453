"""What models predict, by name; importing this registers every task, without torch.

The classes that need torch are imported when they are first used.
"""

from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from trainer.options.task import TaskOptions
from trainer.switches import Switch
from trainer.tasks.options import (
    ClmOptions,
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
from trainer.tasks.registry import TASKS, TaskEntry

if TYPE_CHECKING:
    from trainer.tasks.base import Arrays, Baseline, Head, Scorer, Scores, Task
    from trainer.tasks.clm import Clm
    from trainer.tasks.denoising import Denoising
    from trainer.tasks.dependency import Dependency
    from trainer.tasks.extractive_qa import ExtractiveQa
    from trainer.tasks.intent_slots import IntentSlots
    from trainer.tasks.mlm import Mlm
    from trainer.tasks.multiple_choice import MultipleChoice
    from trainer.tasks.relation import Relation
    from trainer.tasks.sequence_classification import SequenceClassification
    from trainer.tasks.structural_probe import StructuralProbe
    from trainer.tasks.token_classification import TokenClassification
    from trainer.tasks.translation import Translation
    from trainer.tasks.trees import Trees
    from trainer.tasks.usl import Usl

_TAGGING = Switch(
    "task.word_labels",
    "a token that the parser made several words of has its label once: B- goes on as I-",
    "each of its words has the token's label, so that one mention becomes several",
)
_RELATION = (
    Switch(
        "task.empty_precision",
        "precision is 0 where no relation is predicted at all",
        "it is 1",
    ),
    Switch(
        "task.classifier",
        "dropout, then one linear map to the classes",
        "two hidden layers without dropout, then the classes",
    ),
)
_DEPENDENCY = Switch(
    "task.mst_space",
    "the tree with the largest product of the probabilities of heads",
    "the tree with the largest sum of the probabilities of heads with their best relations",
)
_GRAPH_PARSER = Switch(
    "task.mst_space",
    "the tree with the largest product of probabilities: the sum of their logarithms",
    "the tree with the largest sum of probabilities",
)
_DENOISING = Switch(
    "task.noise",
    "35 % of the pieces are covered: a third in masked spans, a third masked one by one, a "
    "third deleted (the shares of the three are ours)",
    "spans of whole words are infilled, a tenth of their masks random pieces; no deletion",
)


def _register(
    options: type[TaskOptions],
    task: str,
    head: str,
    *switches: Switch,
    auto_class: str | None = None,
) -> None:
    """Register a task under the name of its options, with classes of the module of that name."""
    (name,) = (str(one.default) for one in fields(options) if one.name == "name")
    module = f"{__name__}.{name.partition('.')[0]}"
    entry = TaskEntry(options, f"{module}:{task}", f"{module}:{head}", auto_class, switches)
    TASKS.add(name, entry)


_register(ClmOptions, "Clm", "ClmHead")
_register(DenoisingOptions, "Denoising", "DenoisingHead", _DENOISING)
_register(DependencyOptions, "Dependency", "DependencyHead", _DEPENDENCY)
_register(
    ExtractiveQaOptions,
    "ExtractiveQa",
    "ExtractiveQaHead",
    auto_class="AutoModelForQuestionAnswering",
)
_register(GraphParserOptions, "UniversalParsing", "GraphParserHead", _GRAPH_PARSER)
_register(IntentSlotsOptions, "IntentSlots", "IntentSlotsHead", _TAGGING)
_register(MlmOptions, "Mlm", "MlmHead")
_register(
    MultipleChoiceOptions,
    "MultipleChoice",
    "MultipleChoiceHead",
    auto_class="AutoModelForMultipleChoice",
)
_register(RelationOptions, "Relation", "RelationHead", *_RELATION)
_register(
    SequenceClassificationOptions,
    "SequenceClassification",
    "SequenceClassificationHead",
    auto_class="AutoModelForSequenceClassification",
)
_register(StackParserOptions, "StackParsing", "StackParserHead")
_register(StructuralProbeOptions, "StructuralProbe", "StructuralProbeHead")
_register(
    TokenClassificationOptions,
    "TokenClassification",
    "TokenClassificationHead",
    _TAGGING,
    auto_class="AutoModelForTokenClassification",
)
_register(TranslationOptions, "Translation", "TranslationHead")
_register(TreesOptions, "Trees", "TreesHead")
_register(UslOptions, "Usl", "UslHead")

_HOMES: Final = {
    "Arrays": "base",
    "Baseline": "base",
    "Clm": "clm",
    "Denoising": "denoising",
    "Dependency": "dependency",
    "ExtractiveQa": "extractive_qa",
    "Head": "base",
    "IntentSlots": "intent_slots",
    "Mlm": "mlm",
    "MultipleChoice": "multiple_choice",
    "Relation": "relation",
    "Scorer": "base",
    "Scores": "base",
    "SequenceClassification": "sequence_classification",
    "StructuralProbe": "structural_probe",
    "Task": "base",
    "TokenClassification": "token_classification",
    "Translation": "translation",
    "Trees": "trees",
    "Usl": "usl",
}
"""The module of each name that needs torch."""

__all__ = [
    "TASKS",
    "Arrays",
    "Baseline",
    "Clm",
    "ClmOptions",
    "Denoising",
    "DenoisingOptions",
    "Dependency",
    "DependencyOptions",
    "ExtractiveQa",
    "ExtractiveQaOptions",
    "GraphParserOptions",
    "Head",
    "IntentSlots",
    "IntentSlotsOptions",
    "Mlm",
    "MlmOptions",
    "MultipleChoice",
    "MultipleChoiceOptions",
    "Relation",
    "RelationOptions",
    "Scorer",
    "Scores",
    "SequenceClassification",
    "SequenceClassificationOptions",
    "StackParserOptions",
    "StructuralProbe",
    "StructuralProbeOptions",
    "Task",
    "TaskEntry",
    "TokenClassification",
    "TokenClassificationOptions",
    "Translation",
    "TranslationOptions",
    "Trees",
    "TreesOptions",
    "Usl",
    "UslOptions",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
