"""Tasks by name; importing this registers every one, without torch.

Their classes, which need torch, are imported from the module of each when they are first used.
"""

from dataclasses import dataclass, fields
from pkgutil import resolve_name
from typing import Any, Final

from syntax.registry import Registry
from syntax.variant import Switch
from trainer.options.task import TaskOptions
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


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """The parts of a registered task; its name is the default ``name`` of the options.

    A class may be ``module:name``, imported when it is used, so that recipes can be checked without
    torch. ``auto_class`` is transformers' that loads models of this task, such as
    ``AutoModelForTokenClassification``; without one, ``AutoModel`` alone loads them.
    """

    options: type[TaskOptions]
    task_class: type[Any] | str
    head_class: type[Any] | str
    auto_class: str | None = None
    switches: tuple[Switch, ...] = ()

    @property
    def task(self) -> type[Any]:
        """The class of targets and scorer, a `trainer.tasks.base.Task`."""
        return _loaded(self.task_class)

    @property
    def head(self) -> type[Any]:
        """The class of the torch module, a `trainer.tasks.base.Head`."""
        return _loaded(self.head_class)


def _loaded(found: type[Any] | str) -> type[Any]:
    kind: type[Any] = resolve_name(found) if isinstance(found, str) else found
    return kind


TASKS: Final[Registry[TaskEntry]] = Registry("task")
"""Every task by name. One more is a module, its options, and a line in `trainer.tasks`."""


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
_register(ConstituencyOptions, "Constituency", "ConstituencyHead")
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

__all__ = [
    "TASKS",
    "ClmOptions",
    "ConstituencyOptions",
    "DenoisingOptions",
    "DependencyOptions",
    "ExtractiveQaOptions",
    "GraphParserOptions",
    "IntentSlotsOptions",
    "MlmOptions",
    "MultipleChoiceOptions",
    "RelationOptions",
    "SequenceClassificationOptions",
    "StackParserOptions",
    "StructuralProbeOptions",
    "TaskEntry",
    "TokenClassificationOptions",
    "TranslationOptions",
    "TreesOptions",
    "UslOptions",
]
