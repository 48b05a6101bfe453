"""Options of models that read the words' states of an encoder that does not learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from syntax.errors import SpecError
from trainer.options.model import ModelOptions, check_separate_trees
from trainer.systems.frozen.words import POOL, STREAM_OPTIONS, word_arrays

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore, OrderPolicy
    from trainer.options.data import DataOptions

TREES_OF_WORDS: Final = ("none", "attach", "broadcast")
"""Policies under which first pieces are as far from each other as their words are."""


@dataclass(frozen=True, slots=True)
class FrozenOptions(ModelOptions):
    """The words of a text, as an encoder that does not learn sees them, computed once and stored.

    Attributes:
        layer: Layer of the states: 0 for the embeddings, -1 for the last layer.
    """

    name: str = "frozen.v1"
    layer: int = -1

    def matrices(self) -> tuple[str, ...]:
        return ("distance", "depth")

    @property
    def reads_words(self) -> bool:
        return True

    def extras(self) -> tuple[str, ...]:
        return ("word_states",)

    def stream_options(self) -> Mapping[str, Any]:
        return STREAM_OPTIONS

    def order(self) -> OrderPolicy:
        from featurestore import OrderPolicy

        return OrderPolicy(pool=POOL)

    def dataset(self, store: FeatureStore | None, dataset: FeatureDataset) -> FeatureDataset:
        from trainer.systems.frozen.states import with_states

        return with_states(store, dataset, self)

    def arrays(self, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        return word_arrays(arrays)

    def check_data(self, data: DataOptions) -> None:
        check_separate_trees(self.name, data)
        if data.policy.removesuffix(".v1") not in TREES_OF_WORDS:
            raise SpecError(
                f"{self.name} reads trees of words, and data.policy is {data.policy!r}; set it to "
                f"one of {', '.join(TREES_OF_WORDS)}"
            )
        if data.template or data.stride is not None or data.level != "document":
            raise SpecError(
                f"{self.name} reads examples as they are; leave data.template, data.stride and "
                "data.level alone"
            )
        if data.matrices != "host":
            raise SpecError(f"{self.name} reads matrices of words; set data.matrices=host")
