"""Options of every model, whichever system it is of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from syntax.errors import SpecError
from syntax.options import Probability, check_fields

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore, OrderPolicy
    from trainer.options.data import DataOptions
    from trainer.options.task import TaskOptions


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options that all models share; a model's own are in a dataclass that adds to these.

    A system overrides the methods in which it differs from an encoder that reads wordpieces.

    Attributes:
        name: Name of the model, in `trainer.systems.SYSTEMS`.
        encoder: A folder, a name on the model hub, or a bundled one, such as ``parsebank-tiny``.
        weights: ``pretrained``, or ``random`` for an encoder built new for the data's tokenizer.
        any_tokenizer: Take pretrained weights that come with another tokenizer than the data's.
        attention: ``sdpa``, or ``eager`` to see attention weights.
        use_syntax: False trains the same model without its trees: the baseline.
        dropout: Of the task's head.
    """

    name: str
    encoder: str = "bert-base-multilingual-cased"
    weights: Literal["pretrained", "random"] = "pretrained"
    any_tokenizer: bool = False
    attention: Literal["sdpa", "eager"] = "sdpa"
    use_syntax: bool = True
    dropout: Probability = 0.1

    def __post_init__(self) -> None:
        check_fields("model", self)

    @property
    def reads_words(self) -> bool:
        """True if stored states of words are read: then training runs no stock encoder."""
        return False

    @property
    def has_syntax_states(self) -> bool:
        """True for an encoder that gives states of a graph encoder."""
        return False

    @property
    def further_layers(self) -> int:
        """Layers behind those of the stock encoder, whose states join ``hidden_states``."""
        return 0

    @property
    def has_decoder(self) -> bool:
        """True for a model with a decoder, which tasks that write texts then take."""
        return False

    @property
    def learned_with(self) -> tuple[str, ...]:
        """Options under which the weights of the system's own parts mean what they were taught."""
        return ()

    @property
    def starts_from(self) -> Path | None:
        """Folder of a run whose weights, those of heads among them, are the first ones."""
        return None

    def fitted(self, tasks: Sequence[TaskOptions]) -> ModelOptions:  # noqa: ARG002
        """The options with what they leave to the fitted tasks of all streams."""
        return self

    def settled(self, before: ModelOptions) -> ModelOptions:  # noqa: ARG002
        return self

    def check_data(self, data: DataOptions) -> None:
        """Refuse data that make no sense for the model, by the option that has to change."""

    def matrices(self) -> tuple[str, ...]:
        """Names of `syntax.matrices.MATRICES` that a batch must carry for this model."""
        return ()

    def extras(self) -> tuple[str, ...]:
        """Names of further arrays of `arrays` that a batch must carry for this model."""
        return ()

    def stream_options(self) -> Mapping[str, Any]:
        """Options of `syntax.batches.AssemblySpec` for what batches must hold."""
        return {}

    def order(self) -> OrderPolicy | None:
        """Order in which a stream gives the examples; None for the usual order."""
        return None

    def new_encoder(self) -> Mapping[str, Any] | None:
        """``to_dict()`` of a stock encoder to build new; None where ``encoder`` names one."""
        return None

    def dataset(self, store: FeatureStore | None, dataset: FeatureDataset) -> FeatureDataset:  # noqa: ARG002
        """The dataset with what else the model reads; examples in memory have no store."""
        return dataset

    def arrays(self, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        return arrays

    def warnings(self, dataset: FeatureDataset, values: Mapping[str, Any]) -> Iterator[str]:  # noqa: ARG002
        """Warnings before training; ``values`` are all options by their dotted names."""
        return iter(())


def check_separate_trees(model: str, data: DataOptions) -> None:
    if data.joint_root:
        raise SpecError(
            f"{model} knows no root above the sentences, and data.joint_root is true; set "
            "data.joint_root=false"
        )


@dataclass(frozen=True, slots=True)
class StockOptions(ModelOptions):
    """A stock encoder as it is; it has no options of its own."""

    name: str = "stock.v1"


class BertSizes(Protocol):
    """The sizes among the options of a system that builds a BERT."""

    @property
    def layers(self) -> int:
        """Of the encoder."""

    @property
    def hidden_size(self) -> int:
        """Width of the states."""

    @property
    def heads(self) -> int:
        """Of each layer; they divide the width."""

    @property
    def feed_forward(self) -> int:
        """Width of the feed-forward networks."""

    @property
    def max_positions(self) -> int:
        """Pieces that there are positions for."""

    @property
    def layer_dropout(self) -> float:
        """Of states and of attention weights."""


def bert_config(sizes: BertSizes) -> dict[str, Any]:
    # Settings arrive one by one, so that their options cannot check this.
    if sizes.hidden_size % sizes.heads:
        raise SpecError(
            f"model.hidden_size is {sizes.hidden_size}, which {sizes.heads} heads cannot divide; "
            "change model.hidden_size or model.heads"
        )
    return {
        "model_type": "bert",
        "num_hidden_layers": sizes.layers,
        "hidden_size": sizes.hidden_size,
        "num_attention_heads": sizes.heads,
        "intermediate_size": sizes.feed_forward,
        "max_position_embeddings": sizes.max_positions,
        "hidden_dropout_prob": sizes.layer_dropout,
        "attention_probs_dropout_prob": sizes.layer_dropout,
    }
