"""Options of probes, their training and their data. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from syntax.errors import SpecError
from syntax.examples import LabelSpec
from syntax.lists import ParserChoice
from syntax.options import Count, NonNegativeInt, Share, check_fields
from syntax.registry import unknown_name
from trainer.probing.words import WORD_PROBES

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore

Target = Literal["distance", "depth"]

TRAIN: Final = "train"
DEV: Final = "dev"
TEST: Final = "test"
SPLITS: Final = (TRAIN, DEV, TEST)

STRUCTURE: Final[Mapping[str, Target]] = {"distance": "distance", "depth": "depth"}

Pool = Literal["cls", "mean", "max"]
"""The vector of a text: the state of its first special token, or mean or maximum of its pieces."""

Activation = Literal["sigmoid", "relu"]


@dataclass(frozen=True, slots=True)
class ClassifierOptions:
    """SentEval's classifier of vectors (Conneau and Kiela 2018), and its training.

    Attributes:
        hidden: Sizes of the hidden layer to choose from on dev; 0 is logistic regression.
        dropout: Probabilities to choose from on dev.
        l2: Factors of the squared weights to choose from on dev; SentEval tries 1e-5 to 1e-2.
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
    batch_size: Count = 64
    learning_rate: Share = 1e-3
    epoch_size: Count = 4
    tenacity: NonNegativeInt = 5
    max_epochs: Count = 200

    def __post_init__(self) -> None:
        check_fields("", self)
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
        learning_rate: Adam's at first; divided by 10 after each pass that is no better on dev.
        epochs: Most passes.
        patience: Passes without a better score on dev after which training ends.
    """

    rank: Count = 128
    batch_size: Count = 20
    learning_rate: Share = 1e-3
    epochs: Count = 40
    patience: Count = 5

    def __post_init__(self) -> None:
        check_fields("", self)


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """Options of a whole curve.

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
    train_items: Count = 20_000
    control: bool = True
    mask: bool = False
    classifier: ClassifierOptions = ClassifierOptions()
    structure: StructureOptions = StructureOptions()

    def __post_init__(self) -> None:
        check_fields("", self)
        if not self.seeds:
            raise SpecError("probes need a seed")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ProbedData:
    """Stored examples to read.

    Attributes:
        dataset: Name of the dataset.
        lang: Its language.
        tokenizer: Name or fingerprint; needed where the store has several and the encoder is not
            a run.
        parser: Whose trees are read, where several parsers' are stored.
        splits: To train on, to choose on, and to score on.
        examples: Most examples of each split, drawn once; all when left out.
    """

    dataset: str
    lang: str
    tokenizer: str | None = None
    parser: str | None = None
    splits: tuple[str, str, str] = SPLITS
    examples: int | None = None

    def open(self, store: FeatureStore, split: str, tokenizer: str | None) -> FeatureDataset:
        parser = str(ParserChoice.read(self.parser)) or None
        found = store.dataset(
            self.dataset, tokenizer=tokenizer, split=split, lang=self.lang, parser=parser
        )
        if not len(found):
            raise SpecError(f"{self.dataset} has no examples in {split}/{self.lang}")
        if self.examples is None or len(found) <= self.examples:
            return found
        chosen = np.zeros(len(found), bool)
        chosen[np.random.default_rng(0).permutation(len(found))[: self.examples]] = True
        return found.selected(found.rows.select(chosen), found.reader)


def check_tasks(tasks: Iterable[str], dataset: FeatureDataset) -> None:
    """Refuse a task that is neither a probe of words nor a class label of the dataset."""
    for name in tasks:
        if name not in WORD_PROBES and name not in STRUCTURE:
            probed_label(name, dataset.labels)


def probed_label(name: str, labels: Iterable[LabelSpec]) -> LabelSpec:
    known = {label.name: label for label in labels}
    if name not in known:
        raise unknown_name("probe", name, {*known, *WORD_PROBES, *STRUCTURE})
    if known[name].kind != "class":
        raise SpecError(f"the label {name!r} is of kind {known[name].kind!r}; a probe needs class")
    return known[name]
