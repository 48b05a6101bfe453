"""What a probe is, and how it is trained. Nothing here imports torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from syntax.errors import SpecError
from trainer.options.checks import check_positive, check_range, check_share

Pool = Literal["cls", "mean", "max"]
"""The vector of a text: the state of its first special token, or mean or maximum of its pieces."""

Activation = Literal["sigmoid", "relu"]


@dataclass(frozen=True, slots=True)
class ClassifierOptions:
    """SentEval's classifier of vectors (Conneau and Kiela 2018), and its training.

    Attributes:
        hidden: Sizes of the hidden layer to choose from on dev; 0 is logistic regression.
        dropout: Probabilities to choose from on dev.
        l2: Factors of the squared weights in the loss to choose from on dev; SentEval tries 1e-5 to
            1e-2, which is four times the work.
        activation: Of the hidden layer.
        batch_size: Vectors of a step.
        learning_rate: Adam's.
        epoch_size: Passes over the training data between two looks at dev.
        tenacity: Looks without a better accuracy that do not end the training.
        max_epochs: Passes after which it ends anyway.
    """

    hidden: tuple[int, ...] = (50, 100, 200)
    dropout: tuple[float, ...] = (0.0, 0.1, 0.2)
    l2: tuple[float, ...] = (0.0,)
    activation: Activation = "sigmoid"
    batch_size: int = 64
    learning_rate: float = 1e-3
    epoch_size: int = 4
    tenacity: int = 5
    max_epochs: int = 200

    def __post_init__(self) -> None:
        for name in ("batch_size", "epoch_size", "max_epochs"):
            check_positive(name, getattr(self, name))
        check_range("tenacity", self.tenacity, 0)
        check_share("learning_rate", self.learning_rate)
        if not self.hidden or min(self.hidden) < 0:
            raise SpecError(f"hidden is {self.hidden}; give sizes of 0 or more")
        if not self.dropout or not all(0 <= share < 1 for share in self.dropout):
            raise SpecError(f"dropout is {self.dropout}; give probabilities below 1")
        if not self.l2 or not all(0 <= factor < 1 for factor in self.l2):
            raise SpecError(f"l2 is {self.l2}; give factors below 1, such as 1e-4")


@dataclass(frozen=True, slots=True)
class StructureOptions:
    """The structural probe (Hewitt and Manning 2019), and its training.

    Attributes:
        rank: Of the linear map.
        batch_size: Sentences of a step.
        learning_rate: Adam's at first; a tenth of it after each pass that is no better on dev.
        epochs: Most passes.
        patience: Passes without a better score on dev after which training ends.
    """

    rank: int = 128
    batch_size: int = 20
    learning_rate: float = 1e-3
    epochs: int = 40
    patience: int = 5

    def __post_init__(self) -> None:
        for name in ("rank", "batch_size", "epochs", "patience"):
            check_positive(name, getattr(self, name))
        check_share("learning_rate", self.learning_rate)


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """What is probed.

    Attributes:
        layers: As transformers counts ``hidden_states``, 0 for the embeddings; all when empty.
        pool: The vector of a text.
        seeds: One probe of each layer is trained with each seed.
        train_items: Most training items of a classifier, drawn once for all layers and seeds.
        control: Also train the classifiers of words on a control task.
        mask: Also probe what SG-Net's mask alone says, without any state.
    """

    layers: tuple[int, ...] = ()
    pool: Pool = "mean"
    seeds: tuple[int, ...] = (0, 1, 2)
    train_items: int = 20_000
    control: bool = True
    mask: bool = False
    classifier: ClassifierOptions = ClassifierOptions()
    structure: StructureOptions = StructureOptions()

    def __post_init__(self) -> None:
        check_positive("train_items", self.train_items)
        if not self.seeds:
            raise SpecError("probes need a seed")

    def to_json(self) -> dict[str, Any]:
        """Every option by name."""
        return asdict(self)
