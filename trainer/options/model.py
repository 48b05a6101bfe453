"""What every model is told, whichever system it is of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from syntax.errors import SpecError
from syntax.registry import Registry
from trainer.options.checks import check_range
from trainer.options.data import DataOptions


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options that all models share; a model's own are in a dataclass that adds to these.

    Attributes:
        name: Name of the model, in `MODEL_OPTIONS` and in `trainer.models.encoders.ENCODERS`.
        encoder: A folder, a name on the model hub, or ``parsebank-tiny``, the bundled one.
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
    dropout: float = 0.1

    def __post_init__(self) -> None:
        check_range("model.dropout", self.dropout, 0, 1)

    @property
    def reads_words(self) -> bool:
        """Whether the model reads stored states of words: then training runs no stock encoder."""
        return False

    def check_data(self, data: DataOptions) -> None:
        """Refuse data that the model cannot mean.

        Raises:
            SpecError: With the option of the data that has to change.
        """

    def matrices(self) -> tuple[str, ...]:
        """Names of `syntax.matrices.MATRICES` that a batch must carry for this model."""
        return ()


def check_separate_trees(model: str, data: DataOptions) -> None:
    """Refuse a root above all sentences, for a model that knows none.

    Raises:
        SpecError: ``data.joint_root`` is set.
    """
    if data.joint_root:
        raise SpecError(
            f"{model} knows no root above the sentences, and data.joint_root is true; set "
            "data.joint_root=false"
        )


MODEL_OPTIONS: Registry[type[ModelOptions]] = Registry("model")
"""The options of each model; their ``name`` is the key."""
