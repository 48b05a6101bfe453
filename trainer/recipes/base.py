"""What a run is: data, model and training, as one frozen dataclass that serialises.

Nothing here imports torch, so that recipes can be listed and described at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from syntax.errors import SpecError
from syntax.registry import Registry
from trainer.switches import Variant

SeparatorEdge: TypeAlias = Literal["as_published", "as_released", "none"]


@dataclass(frozen=True, slots=True)
class DataOptions:
    """Which stored examples a run reads, and how they become batches.

    Attributes:
        dataset: Name in the store.
        train_split, lang: What is trained on, in which language.
        dev_split: What models are selected on, in the same language.
        tokenizer: Its name or fingerprint; may be left out when the store holds one.
        parser: Its fingerprint; may be left out when the store holds one.
        version: The dataset's version, pinned; the newest when left out. A result records it.
        label: The label column to predict.
        max_length: Wordpieces of an example, specials included.
        truncation: How a longer example is shortened.
        policy: How the pieces of a word hang in the tree.
        joint_root: Whether [CLS] is the root of all trees.
        separator_edge: What [SEP] hangs from (a switch), or ``none``.
        bucket: Whether batches gather examples of similar length.
        matrices: ``host`` streams them; ``device`` derives them there from the parents, for
            data that ``max_length`` never cuts.
    """

    dataset: str
    train_split: str = "train"
    lang: str = "en"
    dev_split: str = "dev"
    tokenizer: str | None = None
    parser: str | None = None
    version: int | None = None
    label: str = "label"
    max_length: int = 128
    truncation: Literal["longest_first", "only_first", "only_second", "none"] = "longest_first"
    policy: str = "attach"
    joint_root: bool = True
    separator_edge: SeparatorEdge = "as_published"
    bucket: bool = True
    matrices: Literal["host", "device"] = "host"


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Which model a run trains; the meaning of each is in `trainer.models.config`.

    Attributes:
        name: Name in `trainer.models.build.MODELS`.
        encoder: A folder, a name on the model hub, or ``parsebank-tiny``, the bundled one.
        weights: ``pretrained``, or ``random`` for an encoder built new for the data's tokenizer.
        attention: ``sdpa``, or ``eager`` to see attention weights.
        use_syntax: False trains the plain encoder: the baseline.
        gat, attention_bias, probe_target: Switches.
        gat_layers, gat_heads, gat_head_size, gat_dropout: Size of the graph encoder.
        max_distance: The paper's delta.
        use_upos, use_deprel: Tags that the graph encoder reads.
        syntax_heads, syntax_layers: Which heads are biased, in which layers (all when left out).
        structure_weight: The paper's alpha.
        probe_rank: Of the structural probes.
        classifier_dropout: Of the task's head.
    """

    name: str = "syntax_bert.v1"
    encoder: str = "bert-base-multilingual-cased"
    weights: Literal["pretrained", "random"] = "pretrained"
    attention: Literal["sdpa", "eager"] = "sdpa"
    use_syntax: bool = True
    gat: Variant = "as_published"
    attention_bias: Variant = "as_published"
    probe_target: Variant = "as_published"
    gat_layers: int = 4
    gat_heads: int = 4
    gat_head_size: int = 64
    gat_dropout: float = 0.1
    max_distance: int = 4
    use_upos: bool = True
    use_deprel: bool = False
    syntax_heads: int = 1
    syntax_layers: tuple[int, ...] | None = None
    structure_weight: float = 0.0
    probe_rank: int = 64
    classifier_dropout: float = 0.1


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """How a run trains.

    Attributes:
        seed: Of initial weights, dropout and the order of examples.
        batch_size: Examples of a batch on one device.
        accumulation: Batches of one optimizer step.
        epochs: Passes over the training data, when ``max_steps`` is left out.
        max_steps: Optimizer steps, however many passes they take.
        learning_rate, epsilon, weight_decay: Of AdamW.
        warmup_steps: Steps over which the learning rate rises, before it falls linearly to 0.
        clip_norm: Largest norm of the gradient; 0 leaves it alone.
        precision: ``fp32``, or mixed with ``bf16`` or ``fp16``.
        compile: Whether to compile the model (worth it on a GPU and in long runs).
        evaluate_every: Steps between evaluations on dev; the last step is always evaluated.
        checkpoint_every: Steps between checkpoints to resume from; none when left out.
        log_every: Steps that one logged loss averages.
        evaluation_batch_size: Examples of a batch in evaluation.
        threads: CPU threads of torch; its own choice when left out.
    """

    seed: int = 0
    batch_size: int = 32
    accumulation: int = 1
    epochs: int = 5
    max_steps: int | None = None
    learning_rate: float = 2e-5
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    warmup_steps: int = 0
    clip_norm: float = 1.0
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    compile: bool = False
    evaluate_every: int | None = 2000
    checkpoint_every: int | None = 2000
    log_every: int = 10
    evaluation_batch_size: int = 64
    threads: int | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "accumulation", "epochs", "log_every", "evaluation_batch_size"):
            _check_positive(name, getattr(self, name))
        for name in ("max_steps", "evaluate_every", "checkpoint_every", "threads"):
            if getattr(self, name) is not None:
                _check_positive(name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class Recipe:
    """One run, whole: with the store it names, it can be repeated from this alone."""

    name: str
    data: DataOptions
    model: ModelOptions = field(default_factory=ModelOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    task: str = "sequence_classification.v1"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON content; `trainer.recipes.options.recipe_from_json` reads it back."""
        return asdict(self)


RECIPES: Registry[Callable[[], Recipe]] = Registry("recipe")
"""Every run by name. A recipe is a function, so that one can be made from another."""


def _check_positive(name: str, value: int) -> None:
    if value < 1:
        raise SpecError(f"training.{name} is {value}; it must be at least 1")
